"""`ZeroRedundancyOptimizer`: each rank steps, and has the state of, its part of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import candelabra
from candelabra import _C, Tensor
from candelabra.optim import Optimizer

from ..collectives.objects import gather_object
from ..collectives.reductions import broadcast
from ..groups import get_global_rank, member, world
from ..join_context import Join, Joinable, JoinHook
from ..process_group import ProcessGroup
from ..work import Work

_ONE_GROUP = "ZeroRedundancyOptimizer with `overlap_with_ddp=True` only supports a single parameter group"


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Divide an optimizer's state among the ranks of a group, which hold the same parameters.

    Each parameter belongs to one rank, by size: the largest first, to the rank that has least. A
    step updates this rank's parameters by the optimizer, and then copies each rank's parameters to
    the others. The results are those of the optimizer on one rank.

    Parameters
    ----------
    params : iterable of Tensor or dict
        Parameters, or groups of them; the same on all ranks.
    optimizer_class : type
        The optimizer, for example `candelabra.optim.AdamW`.
    process_group : ProcessGroup, optional
        The world by default.
    parameters_as_bucket_view : bool
        Keep the parameters of each rank in one buffer, of which they become views. A step then
        sends one message for each rank instead of one for each parameter.
    overlap_with_ddp : bool
        A communication hook of `candelabra.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook`
        steps during the backward pass. `step` does nothing then, there is one parameter group, and
        `parameters_as_bucket_view` has no effect.
    **defaults
        The optimizer's options.

    Raises
    ------
    TypeError, ValueError
        `params` is empty, or has other things than dense parameters of one dtype.
    RuntimeError
        There are several parameter groups, and `overlap_with_ddp` is True.

    Examples
    --------
    >>> import candelabra, candelabra.distributed as dist
    >>> from candelabra.distributed.optim import ZeroRedundancyOptimizer
    >>> dist.init_process_group("fake", rank=0, world_size=2)
    >>> model = candelabra.nn.Linear(4, 2)
    >>> optimizer = ZeroRedundancyOptimizer(model.parameters(), candelabra.optim.Adam, lr=0.01)
    >>> [parameter.shape for parameter in optimizer.optim.param_groups[0]["params"]]  # of this rank
    [candelabra.Size([2, 4])]
    >>> dist.destroy_process_group()
    """

    _is_ready = False

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        given = _checked(params)
        if overlap_with_ddp and isinstance(given[0], dict) and len(given) > 1:
            raise RuntimeError(_ONE_GROUP)
        group = member(process_group) if process_group is not None else world()
        if group is None:
            raise ValueError("ZeroRedundancyOptimizer: this rank does not belong to the process group")
        super().__init__(given, defaults)
        self.process_group = group
        self.world_size = group.size()
        self.rank = group.rank()
        self.global_rank = get_global_rank(group, self.rank)
        self.overlap_with_ddp = overlap_with_ddp
        self.parameters_as_bucket_view = parameters_as_bucket_view and not overlap_with_ddp
        #: The states of all ranks, on the rank that has called for them.
        self._all_states: list[dict[str, Any]] = []
        self._partition()
        self.optim: Optimizer = optimizer_class(self._groups_of[self.rank], **defaults)
        self.state = self.optim.state
        _copy_options(self.optim.param_groups, self.param_groups)
        self._buckets: list[tuple[int, Tensor]] = []
        self._trainable = self._trainable_parameters()
        self._make_buckets()
        self._is_ready = True

    # ---- who has what

    def _partition(self) -> None:
        """Assign each parameter to a rank; earlier groups keep their assignment."""
        #: The groups of each rank, with its own parameters only.
        self._groups_of: list[list[dict[str, Any]]] = [[] for _ in range(self.world_size)]
        #: The parameters of each rank.
        self._parameters_of: list[list[Tensor]] = [[] for _ in range(self.world_size)]
        sizes = [0] * self.world_size
        for group in self.param_groups:
            for groups in self._groups_of:
                groups.append({**group, "params": []})
            for parameter in sorted(group["params"], key=Tensor.numel, reverse=True):
                rank = sizes.index(min(sizes))
                sizes[rank] += parameter.numel()
                self._groups_of[rank][-1]["params"].append(parameter)
                self._parameters_of[rank].append(parameter)

    def _trainable_parameters(self) -> list[bool]:
        return [parameter.requires_grad for parameters in self._parameters_of for parameter in parameters]

    def _make_buckets(self) -> None:
        """Copy each rank's parameters into one buffer for each device, of which they become
        views.
        """
        self._buckets = []
        if not self.parameters_as_bucket_view:
            return
        for rank, parameters in enumerate(self._parameters_of):
            by_device: dict[candelabra.device, list[Tensor]] = {}
            for parameter in parameters:
                if parameter.requires_grad:
                    by_device.setdefault(parameter.device, []).append(parameter)
                else:
                    # It may be a view of an earlier bucket, which would stay in memory.
                    parameter.data = parameter.detach().clone()
            for of_device in by_device.values():
                bucket = candelabra.cat([parameter.detach().reshape(-1) for parameter in of_device])
                for parameter, part in zip(of_device, bucket.split([p.numel() for p in of_device]), strict=True):
                    parameter.data = part.view(parameter.shape)
                self._buckets.append((rank, bucket))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a parameter group, on all ranks. Parameters of earlier groups stay where they are.

        Parameters
        ----------
        param_group : dict
            ``"params"``, and options of the group.
        """
        if self._is_ready and self.overlap_with_ddp:
            raise RuntimeError(_ONE_GROUP)
        super().add_param_group(param_group)
        if not self._is_ready:
            return
        self._partition()
        self.optim.add_param_group(self._groups_of[self.rank][-1])
        self._trainable = self._trainable_parameters()
        self._make_buckets()

    # ---- steps

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update this rank's parameters, and copy all ranks' to one another.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss again, on all ranks.
        **kwargs
            Passed on to the optimizer's step.

        Returns
        -------
        object
            The result of the optimizer's step.
        """
        if self.overlap_with_ddp:
            _C.warn("`step()` should not be included in the training loop when `overlap_with_ddp=True`")
            return None
        Join.notify_join_context(self)
        trainable = self._trainable_parameters()
        if trainable != self._trainable:
            self._trainable = trainable
            self._make_buckets()
        _copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)
        _copy_options(self.optim.param_groups, self.param_groups)
        self._copy_parameters()
        return loss

    def step_bucket(self, parameters: list[Tensor], gradients: list[Tensor]) -> list[Work]:
        """Update those of some parameters that belong to this rank, and start to copy each to the
        other ranks.

        Parameters
        ----------
        parameters, gradients : list of Tensor
            The same on all ranks. Parameters that the optimizer does not have are left out.

        Returns
        -------
        list of Work
            The copies.
        """
        found = {id(parameter): gradient for parameter, gradient in zip(parameters, gradients, strict=True)}
        own = self._parameters_of[self.rank]
        before = [parameter.grad for parameter in own]
        _copy_options(self.param_groups, self.optim.param_groups)
        for parameter in own:
            parameter.grad = found.get(id(parameter))
        self.optim.step()
        for parameter, grad in zip(own, before, strict=True):
            parameter.grad = grad
        works = []
        for rank, owned in enumerate(self._parameters_of):
            for parameter in owned:
                if id(parameter) in found:
                    work = broadcast(parameter.detach(), group=self.process_group, group_src=rank, async_op=True)
                    assert work is not None
                    works.append(work)
        return works

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what this rank does in a `candelabra.distributed.algorithms.join.Join` when it has
        no more inputs: steps of its part of the parameters.
        """
        return _StepHook(self)

    @property
    def join_device(self) -> candelabra.device:
        """The device of the first parameter."""
        first: Tensor = self.param_groups[0]["params"][0]
        return first.device

    @property
    def join_process_group(self) -> ProcessGroup:
        """The ranks."""
        return self.process_group

    def _copy_parameters(self) -> None:
        group = self.process_group
        sent: Iterable[tuple[int, Tensor]] = self._buckets or (
            (rank, parameter.detach())
            for rank, parameters in enumerate(self._parameters_of)
            for parameter in parameters
            if parameter.requires_grad
        )
        works = [broadcast(tensor, group=group, group_src=rank, async_op=True) for rank, tensor in sent]
        for work in works:
            assert work is not None
            work.wait()

    # ---- state dicts

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the states of all ranks on one of them, in host memory. All ranks must call it.

        Parameters
        ----------
        to : int
            The rank in the group, on which `state_dict` can be called then.
        """
        if not 0 <= to < self.world_size:
            raise ValueError(f"consolidate_state_dict: to must be a rank from 0 to {self.world_size - 1}, but is {to}")
        _copy_options(self.param_groups, self.optim.param_groups)
        own = _on_host(self.optim.state_dict())
        found: list[Any] | None = [None] * self.world_size if self.rank == to else None
        gather_object(own, found, group=self.process_group, group_dst=to)
        self._all_states = [] if found is None else found

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all ranks as of the last `consolidate_state_dict`, in the form of the
        optimizer's own.

        Raises
        ------
        RuntimeError
            It was not consolidated on this rank.
        """
        if not self._all_states:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. "
                f"Please call `consolidate_state_dict(to={self.rank})` on "
                "all ranks beforehand if you meant to save the global state."
            )
        result = super().state_dict()
        numbers = self._numbers()
        state = result["state"]
        for local, groups in zip(self._all_states, self._groups_of, strict=True):
            for packed, group in zip(local["param_groups"], groups, strict=False):
                for number, parameter in zip(packed["params"], group["params"], strict=True):
                    if number in local["state"]:
                        state[numbers[id(parameter)]] = local["state"][number]
        result["state"] = dict(sorted(state.items()))
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take this rank's part of a state of all ranks, or of the optimizer on one rank.

        Parameters
        ----------
        state_dict : dict
            A result of `state_dict`, for any number of ranks.
        """
        super().load_state_dict({"state": {}, "param_groups": state_dict["param_groups"]})
        numbers = self._numbers()
        own = self.optim.state_dict()
        state = {}
        for packed, group in zip(own["param_groups"], self._groups_of[self.rank], strict=True):
            for number, parameter in zip(packed["params"], group["params"], strict=True):
                if numbers[id(parameter)] in state_dict["state"]:
                    state[number] = state_dict["state"][numbers[id(parameter)]]
        self.optim.load_state_dict({"state": state, "param_groups": own["param_groups"]})
        self.state = self.optim.state
        self._all_states = []
        _copy_options(self.param_groups, self.optim.param_groups)

    def _numbers(self) -> dict[int, int]:
        parameters = (parameter for group in self.param_groups for parameter in group["params"])
        return {id(parameter): number for number, parameter in enumerate(parameters)}


class _StepHook(JoinHook):
    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self._optimizer = optimizer

    def main_hook(self) -> None:
        if not self._optimizer.overlap_with_ddp:
            self._optimizer.step()


def _checked(params: Any) -> list[Any]:
    """Return the parameters or groups, which have dense tensors of one dtype."""
    if isinstance(params, Tensor):
        raise TypeError("`params` argument should be an iterable of Tensors, but got candelabra.Tensor")
    try:
        given = list(params)
    except TypeError:
        raise TypeError(
            f"`params` argument should be an iterable of Tensors or dicts, but got {type(params).__qualname__}"
        ) from None
    if not given:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    if all(isinstance(each, Tensor) for each in given):
        tensors = given
    elif all(isinstance(each, dict) for each in given):
        if not all("params" in each for each in given):
            raise ValueError(
                "Each parameter group passed-in via `params` must have a 'params' key mapping to the parameters in the "
                "group"
            )
        given = [{**each, "params": _listed(each["params"])} for each in given]
        tensors = [tensor for each in given for tensor in each["params"]]
    else:
        raise TypeError("`params` argument should be an iterable of Tensors or dicts")
    for tensor in tensors:
        if tensor.is_sparse:
            raise ValueError(
                "ZeroRedundancyOptimizer only supports using the same dense type for all parameters but got a sparse one"
            )
        if tensor.dtype != tensors[0].dtype:
            raise ValueError(
                "ZeroRedundancyOptimizer only supports using the same dense type for all parameters but got both "
                f"{tensors[0].dtype} and {tensor.dtype}"
            )
    return given


def _listed(parameters: Any) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _copy_options(source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
    """Copy the options of groups, but not their parameters."""
    for given, taking in zip(source, target, strict=True):
        for name in given.keys() - {"params", "param_names"}:
            taking[name] = given[name]


def _on_host(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().to("cpu")
    if isinstance(value, dict):
        return {key: _on_host(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_on_host(each) for each in value)
    return value
