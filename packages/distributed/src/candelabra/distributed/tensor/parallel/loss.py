"""`loss_parallel`: cross entropy of logits whose classes are sharded, without gathering them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import candelabra
from candelabra import Tensor

from ...collectives.reductions import all_reduce
from ...process_group import ProcessGroup
from ...reduce_op import ReduceOp
from ..dispatch import overriding
from ..dtensor import DTensor, moved
from ..layout import Layout, Placements, compute_local_shape_and_global_offset, contiguous_stride
from ..placements import Placement, Replicate, Shard

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
_NONE, _MEAN = 0, 1


@contextmanager
def loss_parallel() -> Iterator[None]:
    """Compute cross entropies of logits whose classes are sharded in parts, in the block.

    The logits are DTensors that exactly one dimension of the mesh shards along the classes. Each
    rank works on its classes; the ranks exchange a few numbers for each sample. The backward pass
    belongs into the block, too. `cross_entropy`, `log_softmax` and `nll_loss` are computed so.

    Examples
    --------
    >>> import candelabra, candelabra.distributed as dist
    >>> from candelabra.distributed.device_mesh import init_device_mesh
    >>> from candelabra.distributed.tensor import Shard, distribute_tensor
    >>> from candelabra.distributed.tensor.parallel import loss_parallel
    >>> from candelabra.nn.functional import cross_entropy
    >>> dist.init_process_group("fake", rank=0, world_size=1)
    >>> mesh = init_device_mesh("cpu", (1,))
    >>> logits = distribute_tensor(candelabra.zeros(2, 4, requires_grad=True), mesh, [Shard(1)])
    >>> with loss_parallel():
    ...     loss = cross_entropy(logits, candelabra.tensor([0, 3]))
    ...     loss.backward()
    >>> round(loss.item(), 4)
    1.3863
    >>> dist.destroy_process_group()
    """
    with overriding(_OPERATORS):
        yield


class _Classes:
    """The classes that this rank has of a tensor, and where tensors of one value a sample are."""

    def __init__(self, tensor: Any, dim: int) -> None:
        if not isinstance(tensor, DTensor):
            raise ValueError("loss_parallel() needs logits that are a DTensor")
        layout = tensor._layout
        found = [i for i, each in enumerate(layout.placements) if each.is_shard(dim)]
        if len(found) != 1:
            raise ValueError(
                f"loss_parallel() requires exactly one mesh dim to shard tensor dimension {dim}, but got placements "
                f"{layout.placements} with {len(found)} such mesh dim(s)."
            )
        if any(not isinstance(each, (Shard, Replicate)) for each in layout.placements):
            raise ValueError(
                f"loss_parallel() expects non-TP mesh dims to be Shard or Replicate, but got placements {layout.placements}"
            )
        self.layout, self.dim, self.local = layout, dim, tensor._local_tensor.detach()
        self.group: ProcessGroup = layout.mesh.get_group(found[0])
        _, offsets = compute_local_shape_and_global_offset(layout.shape, layout.mesh, layout.placements)
        self.first = offsets[dim]
        #: Of the targets and the losses of samples, which have no dimension of classes.
        self.samples: Placements = tuple(self._without_classes(each) for each in layout.placements)

    def _without_classes(self, placement: Placement) -> Placement:
        if not isinstance(placement, Shard) or placement.dim == self.dim:
            return Replicate()
        return Shard(placement.dim - 1) if placement.dim > self.dim else placement

    def sum(self, value: Tensor) -> Tensor:
        """Return the sum over the ranks that have the other classes."""
        value = value.contiguous()
        all_reduce(value, group=self.group)
        return value

    def sum_of_samples(self, value: Tensor) -> Tensor:
        """Return the sum of all samples, of which other ranks may have some."""
        total = value.sum()
        for i, each in enumerate(self.samples):
            if isinstance(each, Shard):
                all_reduce(total, group=self.layout.mesh.get_group(i))
        return total

    def placed(self, local: Tensor, placements: Placements) -> DTensor:
        """Return a DTensor without the dimension of classes, or of one value."""
        shape: tuple[int, ...] = ()
        if local.ndim:
            shape = tuple(size for at, size in enumerate(self.layout.shape) if at != self.dim)
        return DTensor(local, Layout(self.layout.mesh, placements, shape, contiguous_stride(shape), local.dtype))

    def like(self, local: Tensor) -> DTensor:
        """Return a DTensor of the logits' shape and placements."""
        layout = self.layout
        return DTensor(local, Layout(layout.mesh, layout.placements, layout.shape, layout.stride, local.dtype))

    def single(self, local: Tensor) -> DTensor:
        """Return a number that all ranks have."""
        return self.placed(local, (Replicate(),) * self.layout.mesh.ndim)

    def logsumexp(self) -> Tensor:
        """Return the logarithm of the sum over all classes, with a dimension of size 1 for them."""
        shape = [1 if at == self.dim else size for at, size in enumerate(self.local.shape)]
        if self.local.shape[self.dim]:
            greatest = self.local.amax(self.dim, keepdim=True).contiguous()
        else:
            greatest = candelabra.full(shape, float("-inf"), dtype=self.local.dtype, device=self.local.device)
        all_reduce(greatest, ReduceOp.MAX, self.group)
        shift = greatest.masked_fill(greatest.isinf(), 0.0)
        return shift + self.sum((self.local - shift).exp().sum(self.dim, keepdim=True)).log()


class _Targets:
    """The targets of this rank's samples: which of them are its classes, and their weights."""

    def __init__(self, classes: _Classes, target: Tensor, weight: Tensor | None, ignored: int) -> None:
        if isinstance(target, DTensor):
            target = moved(target, classes.samples)._local_tensor
        elif any(isinstance(each, Shard) for each in classes.samples):
            raise ValueError(
                f"loss_parallel() needs the target as a DTensor with the placements {classes.samples}, since samples are sharded"
            )
        is_used = target != ignored
        of_rank = target - classes.first
        self.is_here = is_used & (of_rank >= 0) & (of_rank < classes.local.shape[classes.dim])
        self.index = of_rank.masked_fill(~self.is_here, 0).unsqueeze(classes.dim)
        if weight is None:
            self.weight = is_used.to(classes.local.dtype)
        else:
            whole = weight.full_tensor() if isinstance(weight, DTensor) else weight
            self.weight = whole[target.masked_fill(~is_used, 0)].masked_fill(~is_used, 0.0)


def _logits(tensor: Any) -> _Classes:
    return _Classes(tensor, 0 if tensor.ndim == 1 else 1)


def _log_softmax(given: dict[str, Any]) -> DTensor:
    tensor, dtype = given["self"], given.get("dtype")
    classes = _Classes(tensor if dtype is None else tensor.to(dtype), given["dim"] % max(tensor.ndim, 1))
    return classes.like(classes.local - classes.logsumexp())


def _log_softmax_backward(given: dict[str, Any]) -> DTensor:
    output = given["output"]
    classes = _Classes(output, given["dim"] % max(output.ndim, 1))
    grad = moved(given["grad"], classes.layout.placements)._local_tensor
    return classes.like(grad - classes.local.exp() * classes.sum(grad.sum(classes.dim, keepdim=True)))


def _picked(classes: _Classes, targets: _Targets) -> Tensor:
    """Return for each sample the value of its class, on all ranks that have others of its
    classes.
    """
    if classes.local.shape[classes.dim]:
        found = classes.local.gather(classes.dim, targets.index).squeeze(classes.dim)
        found = found.masked_fill(~targets.is_here, 0.0)
    else:
        found = candelabra.zeros(targets.is_here.shape, dtype=classes.local.dtype, device=classes.local.device)
    return classes.sum(found)


def _combined(classes: _Classes, targets: _Targets, losses: Tensor, reduction: int) -> tuple[DTensor, DTensor]:
    """Return the loss and the total weight."""
    total = classes.sum_of_samples(targets.weight)
    if reduction == _NONE:
        return classes.placed(losses, classes.samples), classes.single(total)
    loss = classes.sum_of_samples(losses)
    return classes.single(loss / total if reduction == _MEAN else loss), classes.single(total)


def _nll_loss(given: dict[str, Any]) -> tuple[DTensor, DTensor]:
    classes = _logits(given["self"])
    targets = _Targets(classes, given["target"], given["weight"], given["ignore_index"])
    return _combined(classes, targets, -_picked(classes, targets) * targets.weight, given["reduction"])


def _by_sample(classes: _Classes, targets: _Targets, given: dict[str, Any], reduction: int) -> Tensor:
    """Return the gradient of each sample's loss, with its weight, and a dimension of size 1."""
    places = classes.samples if reduction == _NONE else (Replicate(),) * classes.layout.mesh.ndim
    grad = moved(given["grad"], places)._local_tensor
    if reduction == _MEAN:
        grad = grad / given["total_weight"]._local_tensor
    return (grad * targets.weight).unsqueeze(classes.dim)


def _subtract_at_targets(values: Tensor, classes: _Classes, targets: _Targets, by_sample: Tensor) -> DTensor:
    if classes.local.shape[classes.dim]:
        taken = by_sample.masked_fill(~targets.is_here.unsqueeze(classes.dim), 0.0).to(values.dtype)
        values = values.scatter_add(classes.dim, targets.index, -taken)
    return classes.like(values)


def _nll_loss_backward(given: dict[str, Any]) -> DTensor:
    classes = _logits(given["self"])
    targets = _Targets(classes, given["target"], given["weight"], given["ignore_index"])
    by_sample = _by_sample(classes, targets, given, given["reduction"])
    return _subtract_at_targets(candelabra.zeros_like(classes.local), classes, targets, by_sample)


def _cross_entropy(given: dict[str, Any]) -> tuple[DTensor, DTensor, DTensor]:
    classes = _logits(given["input"])
    targets = _Targets(classes, given["target"], given.get("weight"), given.get("ignore_index", -100))
    normalizer = classes.logsumexp().squeeze(classes.dim)
    losses = (normalizer - _picked(classes, targets)) * targets.weight
    combined = _combined(classes, targets, losses, _REDUCTIONS[given.get("reduction", "mean")])
    return *combined, classes.placed(normalizer, classes.samples)


def _cross_entropy_backward(given: dict[str, Any]) -> DTensor:
    classes = _logits(given["input"])
    targets = _Targets(classes, given["target"], given["weight"], given["ignore_index"])
    by_sample = _by_sample(classes, targets, given, _REDUCTIONS[given["reduction"]])
    normalizer = given["statistics"]._local_tensor.unsqueeze(classes.dim)
    return _subtract_at_targets((classes.local - normalizer).exp() * by_sample, classes, targets, by_sample)


_OPERATORS = {
    "log_softmax": _log_softmax,
    "log_softmax_backward": _log_softmax_backward,
    "nll_loss_forward": _nll_loss,
    "nll_loss_backward": _nll_loss_backward,
    "cross_entropy_forward": _cross_entropy,
    "cross_entropy_backward": _cross_entropy_backward,
}
