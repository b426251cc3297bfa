"""Convert and move the parameters and buffers of a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import candelabra
from candelabra import Tensor, no_grad

from ...parameter import Parameter, is_lazy

if TYPE_CHECKING:
    from ..module import Module


def _floats(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _gets_memory(old: Tensor, new: Tensor) -> bool:
    """Return whether a parameter comes from the device meta or goes there: as in PyTorch, it is
    another object then.
    """
    return type(old) is Parameter and type(new) is Tensor and old.is_meta != new.is_meta


class Conversion:
    """Implement the methods of `Module` that convert and move its tensors.

    They all work in place and return self. `Parameter` objects keep their identity, except those
    that come from the device meta or go there.
    """

    #: Whether conversions make new parameters, or exchange those that there are with new ones
    #: (`utils.swap_tensors`), as a program may ask under the name ``torch``.
    _overwrites: bool = False
    _swaps: bool = False

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of every parameter, gradient and buffer by ``fn`` of it."""
        if recurse:
            for module in self._modules.values():
                if module is not None:
                    module._apply(fn)
        for name, parameter in list(self._parameters.items()):
            if parameter is None:
                continue
            with no_grad():
                new = fn(parameter)
                grad = parameter.grad
                new_grad = None if grad is None else fn(grad)
            if self._swaps and not is_lazy(parameter):
                self._exchange(name, parameter, new, new_grad)
                continue
            is_new = self._overwrites or _gets_memory(parameter, new)
            if is_new and not is_lazy(parameter):
                self._parameters[name] = made = Parameter(new, parameter.requires_grad)
                made.grad = None if new_grad is None else new_grad.requires_grad_(grad.requires_grad)  # type: ignore[union-attr]
                continue
            if grad is not None:
                parameter.grad = None  # the old gradient would differ from the new data in dtype or device
            if new is not parameter:
                parameter.data = new
            if grad is not None:
                if new_grad is not grad:
                    grad.data = new_grad
                parameter.grad = grad
        for name, buffer in self._buffers.items():
            if is_lazy(buffer):
                # An uninitialized buffer must keep its class.
                buffer.data = fn(buffer.data)  # type: ignore[union-attr]
            elif buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _exchange(self, name: str, parameter: Parameter, new: Tensor, new_grad: Tensor | None) -> None:
        """Swap a parameter and its gradient with converted ones; both keep their identity."""
        grad = parameter.grad
        parameter.grad = None
        try:
            parameter._swap(Parameter(new, parameter.requires_grad))
        except Exception as error:
            parameter.grad = grad
            raise RuntimeError(f"_apply(): Couldn't swap {type(self).__name__}.{name}") from error
        if grad is not None and new_grad is not None:
            if new_grad is not grad:
                grad._swap(new_grad.requires_grad_(grad.requires_grad))
            parameter.grad = grad

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move to a device, convert floating and complex tensors to a dtype, or both.

        Call it as ``to(device=None, dtype=None, non_blocking=False)``, ``to(dtype,
        non_blocking=False)``, ``to(tensor, non_blocking=False)`` or ``to(memory_format=...)``.
        Integer tensors keep their dtype.

        Raises
        ------
        TypeError
            If the dtype is neither floating nor complex.

        Examples
        --------
        >>> import candelabra
        >>> from candelabra import nn
        >>> nn.Linear(2, 2).to(candelabra.float64).weight.dtype
        candelabra.float64
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        def convert(tensor: Tensor) -> Tensor:
            options: dict[str, Any] = {"non_blocking": non_blocking}
            if device is not None:
                options["device"] = device
            if dtype is not None and _floats(tensor):
                options["dtype"] = dtype
            if memory_format is not None and tensor.ndim == 4:
                options["memory_format"] = memory_format
            if len(options) == 1:
                return tensor
            try:
                return tensor.to(**options)
            except NotImplementedError as error:
                if not tensor.is_meta:
                    raise
                raise NotImplementedError(
                    f"{error} Please use candelabra.nn.Module.to_empty() instead of candelabra.nn.Module.to() when moving module "
                    "from meta to a different device."
                ) from None

        return self._apply(convert)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to one dtype."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self) -> Self:
        """Convert floating tensors to float32."""
        return self._apply(lambda tensor: tensor.to(candelabra.float32) if tensor.is_floating_point() else tensor)

    def double(self) -> Self:
        """Convert floating tensors to float64."""
        return self._apply(lambda tensor: tensor.to(candelabra.float64) if tensor.is_floating_point() else tensor)

    def half(self) -> Self:
        """Convert floating tensors to float16."""
        return self._apply(lambda tensor: tensor.to(candelabra.float16) if tensor.is_floating_point() else tensor)

    def bfloat16(self) -> Self:
        """Convert floating tensors to bfloat16."""
        return self._apply(lambda tensor: tensor.to(candelabra.bfloat16) if tensor.is_floating_point() else tensor)

    def cpu(self) -> Self:
        """Move to the CPU."""
        return self._apply(lambda tensor: tensor.to("cpu"))

    def cuda(self, device: Any = None) -> Self:
        """Move to a CUDA device: the current one, or the one with this index."""
        target = "cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device
        return self._apply(lambda tensor: tensor.to(target))

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move to a device without copying; the new memory is uninitialized."""
        return self._apply(lambda tensor: candelabra.empty_like(tensor, device=device), recurse=recurse)

    def share_memory(self) -> Self:
        """Move all parameters and buffers to shared memory."""
        return self._apply(lambda tensor: tensor.share_memory_())


def _parse_to(
    *args: Any,
    device: Any = None,
    dtype: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> tuple[Any, Any, bool, Any]:
    if copy:
        raise RuntimeError(".to() does not accept copy argument")
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
        device, dtype = other.device, other.dtype
    elif rest and isinstance(rest[0], candelabra.dtype):
        dtype = rest.pop(0)
    elif rest:
        device = rest.pop(0)
        if rest:
            dtype = rest.pop(0)
    if rest:
        non_blocking = rest.pop(0)
    if len(rest) > 1:
        raise TypeError(
            f"to() received an invalid combination of arguments: {args}; expected (device, dtype), (dtype) or (tensor)"
        )
    if device is not None and not isinstance(device, candelabra.device):
        if not isinstance(device, str | int):
            raise TypeError(
                f"to() received an invalid combination of arguments - got ({type(device).__name__}), but expected a device, dtype or tensor"
            )
        device = candelabra.device(device)
    if dtype is not None and not isinstance(dtype, candelabra.dtype):
        raise TypeError(
            f"to() received an invalid combination of arguments - got (dtype={type(dtype).__name__}), but expected a device, dtype or tensor"
        )
    return device, dtype, non_blocking, memory_format
