"""Averages gradients on all ranks at first, and on the ranks of a machine later."""

from __future__ import annotations

import logging

from ...data_parallel.averaging import averaged
from ...data_parallel.grad_bucket import GradBucket
from ...futures import Future
from ...groups import new_subgroups
from ...process_group import ProcessGroup

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]

_logger = logging.getLogger(__name__)


class PostLocalSGDState:
    """What `post_localSGD_hook` remembers.

    Parameters
    ----------
    process_group : ProcessGroup or None
        All ranks; None for the world.
    subgroup : ProcessGroup or None
        The ranks that average gradients later; None for those of each machine.
    start_localSGD_iter : int
        All ranks average gradients for so many iterations.
    post_local_gradient_allreduce : bool
        Whether gradients are averaged later at all.
    """

    def __init__(
        self,
        process_group: ProcessGroup | None,
        subgroup: ProcessGroup | None,
        start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        _logger.info("Local SGD will be started after %s iterations", start_localSGD_iter)
        self.process_group = process_group
        self.subgroup = subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count an iteration with its last bucket."""
        if bucket.is_last():
            self.iter += 1
        if self.iter == self.start_localSGD_iter:
            _logger.info("Start to apply local SGD after %s iterations.", self.iter)


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future:
    """Average gradients on all ranks, and from `start_localSGD_iter` on within the subgroup.

    `candelabra.distributed.algorithms.model_averaging.averagers.PeriodicModelAverager` averages the
    parameters then, after optimizer steps.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import (
    ...     PostLocalSGDState,
    ...     post_localSGD_hook,
    ... )
    >>> from candelabra.distributed.data_parallel import GradBucket
    >>> state = PostLocalSGDState(None, None, start_localSGD_iter=0, post_local_gradient_allreduce=False)
    >>> post_localSGD_hook(state, GradBucket(0, candelabra.ones(2), [], True)).wait()
    tensor([1., 1.])
    """
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return averaged(state.process_group, bucket.buffer())
    if not state.post_local_gradient_allreduce:
        future = Future()
        future.set_result(bucket.buffer())
        return future
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return averaged(state.subgroup, bucket.buffer())
