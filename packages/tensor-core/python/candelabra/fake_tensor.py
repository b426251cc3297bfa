"""Fake tensors: tensors with a shape, a dtype and any device, and without memory.

Within a :class:`FakeTensorMode`, operators compute shapes only, as on the device ``meta``, and
their results say on which device they would be. The device's backend need not be installed.
"""

from __future__ import annotations

from candelabra import _C
from candelabra import library as _library  # noqa: F401  (a package is imported before its modules)
from candelabra.library.aten_dispatch import operator_of
from candelabra.python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor", "FakeTensorMode", "is_fake"]


class DynamicOutputShapeException(RuntimeError):
    """The shape of an operator's result depends on data, which a fake tensor has not."""

    def __init__(self, func: Any) -> None:
        super().__init__(func)
        self.func = func


class DataDependentOutputException(RuntimeError):
    """A number is asked of a fake tensor."""

    def __init__(self, func: Any) -> None:
        super().__init__(func)
        self.func = func


class FakeTensor(_C.Tensor):
    """A tensor of a `FakeTensorMode`; :meth:`FakeTensorMode.from_tensor` makes one.

    Parameters
    ----------
    fake_mode
        The mode that computes operators of the tensor.
    elem : Tensor
        A tensor of the device ``meta``.
    device
        Where the tensor would be.
    """

    fake_mode: FakeTensorMode
    _elem: _C.Tensor
    __torch_function__ = _C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls: Any, fake_mode: FakeTensorMode, elem: _C.Tensor, device: Any) -> FakeTensor:
        made = _C.Tensor._make_wrapper_subclass(
            cls,
            tuple(elem.shape),
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            device=_C.device(device),
        )
        made.fake_mode, made._elem = fake_mode, elem
        return made

    @property
    def fake_device(self) -> _C.device:
        """The device that the tensor would be on."""
        return self.device

    def item(self) -> Any:
        raise DataDependentOutputException("item")

    def tolist(self) -> Any:
        raise DataDependentOutputException("tolist")

    def __bool__(self) -> bool:
        raise DataDependentOutputException("bool")

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        dtype = "" if self.dtype is _C.get_default_dtype() else f", dtype={self.dtype}"
        return f"FakeTensor(..., device='{self.device}', size={tuple(self.shape)}{dtype})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        mode = next(found.fake_mode for found in _tensors((args, kwargs or {})) if isinstance(found, FakeTensor))
        return mode.__torch_dispatch__(func, types, args, kwargs)


def _tensors(value: Any) -> list[_C.Tensor]:
    if isinstance(value, _C.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [found for entry in value for found in _tensors(entry)] if isinstance(value, (list, tuple)) else []


class FakeTensorMode(TorchDispatchMode):
    """A context in which operators compute shapes only.

    Parameters
    ----------
    allow_non_fake_inputs
        Whether operators take real tensors, too. Default: only those of one number.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.fake_tensor import FakeTensorMode
    >>> with FakeTensorMode():
    ...     candelabra.ones(1024, 1024, device="xpu") @ candelabra.ones(1024, 8, device="xpu")
    FakeTensor(..., device='xpu', size=(1024, 8))
    """

    def __init__(self, *, allow_non_fake_inputs: bool = False, **_: Any) -> None:
        self.allow_non_fake_inputs = allow_non_fake_inputs

    def from_tensor(self, tensor: _C.Tensor, **_: Any) -> FakeTensor:
        """Return a fake tensor like a real one."""
        if isinstance(tensor, FakeTensor):
            return tensor
        elem = _C.Tensor.detach(tensor).to("meta")
        made = FakeTensor(self, elem, tensor.device)
        made.requires_grad_(tensor.requires_grad)
        return made

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func = operator_of(func)
        kwargs = {} if kwargs is None else kwargs
        asked, arguments, keywords = self._without_devices(func, args, kwargs)
        device = asked if asked is not None else self._common_device(func, _tensors((args, kwargs)))
        before = {id(fake._elem): fake for fake in _tensors((args, kwargs)) if isinstance(fake, FakeTensor)}
        if "device" in func.parameters and not before:
            keywords["device"] = "meta"
        try:
            result = func(*self._elements(func, arguments), **self._elements(func, keywords))
        except NotImplementedError as error:
            raise DynamicOutputShapeException(func) from error
        return self._fakes(result, device, before)

    def _without_devices(self, func: Any, args: Any, kwargs: Any) -> tuple[Any, list[Any], dict[str, Any]]:
        """Return the device argument, and the arguments with meta in its place."""
        kinds = dict(zip(func.parameters, func.parameter_types))
        arguments, keywords, asked = list(args), dict(kwargs), None
        for place, (name, value) in enumerate([*zip(func.parameters, arguments), *keywords.items()]):
            # The operator `to` takes a device among other things.
            kind = kinds.get(name, "")
            if not (isinstance(value, _C.device) or (isinstance(value, str) and kind.startswith(("device", "object")))):
                continue
            asked = _C.device(value)
            if place < len(arguments):
                arguments[place] = "meta"
            else:
                keywords[name] = "meta"
        return asked, arguments, keywords

    def _common_device(self, func: Any, tensors: list[_C.Tensor]) -> Any:
        found: Any = None
        of_number = True
        for tensor in tensors:
            is_number = tensor.ndim == 0 and tensor.device.type == "cpu"
            if found is None or (of_number and not is_number):
                found, of_number = tensor.device, is_number
            elif not is_number and tensor.device != found:
                raise RuntimeError(
                    f"Unhandled FakeTensor Device Propagation for {func.name}, found two different devices {found}, {tensor.device}"
                )
        return _C.get_default_device() if found is None else found

    def _elements(self, func: Any, value: Any) -> Any:
        if isinstance(value, FakeTensor):
            return value._elem
        if isinstance(value, _C.Tensor):
            # A parameter of a fake tensor has its memory: none.
            if value.is_meta or "_device_stood_for" in value.__dict__:
                return value
            if not self.allow_non_fake_inputs and value.numel() != 1:
                raise RuntimeError(
                    "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. "
                    f"Found in {func.name}"
                )
            return value.to("meta")
        if isinstance(value, dict):
            return {name: self._elements(func, entry) for name, entry in value.items()}
        if type(value) in (list, tuple):
            return type(value)([self._elements(func, entry) for entry in value])
        return value

    def _fakes(self, result: Any, device: Any, before: dict[int, FakeTensor]) -> Any:
        if isinstance(result, _C.Tensor):
            known = before.get(id(result))  # an operator in place, or one with nothing to do
            return known if known is not None and known.device == device else FakeTensor(self, result, device)
        if isinstance(result, (list, tuple)):
            entries = [self._fakes(entry, device, before) for entry in result]
            make = getattr(type(result), "_make", type(result))
            return make(entries)
        return result


def is_fake(x: Any) -> bool:
    """Return whether an object is a fake tensor, or a tensor subclass that consists of them.

    Raises
    ------
    AssertionError
        If some of its tensors are fake and others are not.
    """
    if isinstance(x, FakeTensor):
        return True
    if not is_traceable_wrapper_subclass(x):
        return False
    names, _ = type(x).__tensor_flatten__(x)
    found = {is_fake(getattr(x, name)) for name in names}
    if len(found) > 1:
        raise AssertionError("got mixed fake and real tensors!")
    return found == {True}
