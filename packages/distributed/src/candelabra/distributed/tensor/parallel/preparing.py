"""Styles that only change where the inputs and outputs of a module are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from candelabra import Tensor, nn

from ...device_mesh import DeviceMesh
from ..dtensor import DTensor
from ..placements import Placement
from .styles import ParallelStyle, _placed

Layouts = Placement | Sequence[Placement | None] | None


def _listed(layouts: Layouts) -> tuple[Placement | None, ...] | None:
    return (layouts,) if isinstance(layouts, Placement) else None if layouts is None else tuple(layouts)


def _prepared(value: Any, mesh: DeviceMesh, now: Placement | None, wanted: Placement | None, is_local: bool) -> Any:
    """Return a tensor as a DTensor in another place, or its part there."""
    if now is None:
        return value
    if not isinstance(value, DTensor):
        if not isinstance(value, Tensor):
            raise AssertionError(f"expecting a tensor for the layout {now}, but got {type(value).__name__}")
        value = DTensor.from_local(value, mesh, (now,))
    if wanted is not None and now != wanted:
        value = _placed(value, wanted)
    return value.to_local() if is_local else value


class PrepareModuleInput(ParallelStyle):
    """Make a module's inputs DTensors, in the places where it needs them.

    Parameters
    ----------
    input_layouts, desired_input_layouts : Placement or tuple of Placement, optional
        For each positional input where it is and where it is wanted; None for others.
    input_kwarg_layouts, desired_input_kwarg_layouts : dict, optional
        The same for inputs by keyword.
    use_local_output : bool
        Give the module this rank's parts, or DTensors.
    """

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts = _listed(input_layouts)
        self.desired_input_layouts = _listed(desired_input_layouts)
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        if len(self.input_kwarg_layouts) != len(self.desired_input_kwarg_layouts):
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have same length!")

    def _prepare(self, inputs: tuple[Any, ...], kwargs: dict[str, Any], mesh: DeviceMesh) -> tuple[Any, Any]:
        if self.input_layouts is not None:
            if len(inputs) != len(self.input_layouts):
                raise ValueError("module inputs and input_layouts should have same length!")
            assert self.desired_input_layouts is not None
            inputs = tuple(
                _prepared(each, mesh, now, wanted, self.use_local_output)
                for each, now, wanted in zip(inputs, self.input_layouts, self.desired_input_layouts, strict=True)
            )
        made = {
            name: _prepared(
                each,
                mesh,
                self.input_kwarg_layouts.get(name),
                self.desired_input_kwarg_layouts.get(name),
                self.use_local_output,
            )
            for name, each in kwargs.items()
        }
        return inputs, made

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        module.register_forward_pre_hook(
            lambda _, inputs, kwargs: self._prepare(inputs, kwargs, device_mesh), with_kwargs=True
        )
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleInput(input_layouts={self.input_layouts}, desired_input_layouts={self.desired_input_layouts}, "
            f"input_kwarg_layouts={self.input_kwarg_layouts}, "
            f"desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleOutput(ParallelStyle):
    """Make a module's outputs DTensors, in the places where they are wanted.

    Parameters
    ----------
    output_layouts, desired_output_layouts : Placement or tuple of Placement
        For each output where it is and where it is wanted; None for others.
    use_local_output : bool
        Return this rank's parts, or DTensors.
    """

    def __init__(
        self, *, output_layouts: Layouts, desired_output_layouts: Layouts, use_local_output: bool = True
    ) -> None:
        self.output_layouts = _listed(output_layouts) or ()
        self.desired_output_layouts = _listed(desired_output_layouts) or ()
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _finish(self, outputs: Any, mesh: DeviceMesh) -> Any:
        given = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(given) != len(self.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        made = tuple(
            _prepared(each, mesh, now, wanted, self.use_local_output)
            for each, now, wanted in zip(given, self.output_layouts, self.desired_output_layouts, strict=True)
        )
        return made[0] if len(made) == 1 else made

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        module.register_forward_hook(lambda _, inputs, outputs: self._finish(outputs, device_mesh))
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleOutput(output_layouts={self.output_layouts}, "
            f"desired_output_layouts={self.desired_output_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleInputOutput(ParallelStyle):
    """Both of `PrepareModuleInput` and `PrepareModuleOutput`.

    Parameters
    ----------
    input_layouts, desired_input_layouts, input_kwarg_layouts, desired_input_kwarg_layouts
        As for `PrepareModuleInput`.
    use_local_input : bool
        Give the module this rank's parts, or DTensors.
    output_layouts, desired_output_layouts, use_local_output
        As for `PrepareModuleOutput`.
    """

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Layouts,
        desired_output_layouts: Layouts,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)

    def __repr__(self) -> str:
        return f"PrepareModuleInputOutput({self.prepare_module_input!r}, {self.prepare_module_output!r})"
