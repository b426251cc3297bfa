"""`parallelize_module`: gives modules their styles by name."""

from __future__ import annotations

from fnmatch import fnmatch

from candelabra import _C
from candelabra.nn import Module

from ...device_mesh import DeviceMesh, current_mesh
from .styles import ParallelStyle


def parallelize_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Module:
    """Make modules compute on parts of their parameters, in place.

    Parameters
    ----------
    module : Module
        Of the same parameters on all ranks.
    device_mesh : DeviceMesh, optional
        Of one dimension; by default that of ``with mesh:``.
    parallelize_plan : ParallelStyle or dict
        The module's style, or those of modules in it by name. In names, ``*`` stands for any
        module.
    src_data_rank : int or None
        The rank of the mesh whose values count; None if all have the same.

    Returns
    -------
    Module
        The same.

    Examples
    --------
    >>> import candelabra.distributed as dist
    >>> from candelabra import nn
    >>> from candelabra.distributed.device_mesh import init_device_mesh
    >>> from candelabra.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    >>> dist.init_process_group("fake", rank=0, world_size=2)
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
    >>> plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    >>> parallelize_module(model, init_device_mesh("cpu", (2,)), plan)[0].weight.to_local().shape
    candelabra.Size([4, 4])
    >>> dist.destroy_process_group()
    """
    mesh = device_mesh or current_mesh()
    if mesh.ndim != 1:
        raise ValueError(f"parallelize_module takes a mesh of one dimension, such as mesh['tp'], but got {mesh}")
    if parallelize_plan is None:
        _C.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so this "
            "parallelize_module call will do nothing.",
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        first, _, rest = path.partition(".")
        if not path:
            parallelize_module(module, mesh, style, src_data_rank=src_data_rank)
            continue
        matched = [child for name, child in module.named_children() if fnmatch(name, first)]
        if not matched:
            _C.warn(
                f"Parallelize plan key '{path}' could not be resolved: no submodule matching token '{first}' in module "
                f"{module}, skipping this plan entry.",
            )
        for child in matched:
            parallelize_module(child, mesh, {rest: style} if rest else style, src_data_rank=src_data_rank)
    return module
