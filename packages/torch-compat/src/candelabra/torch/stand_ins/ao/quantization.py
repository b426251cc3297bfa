"""``torch.ao.quantization``: markers that float models contain, and functions that refuse to
quantize.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from candelabra.nn import Module

_REFUSED = (
    "convert", "disable_fake_quant", "disable_observer", "enable_fake_quant", "enable_observer", "fuse_modules", "fuse_modules_qat",
    "get_default_qat_qconfig", "get_default_qat_qconfig_mapping", "get_default_qconfig", "get_default_qconfig_mapping", "prepare",
    "prepare_qat", "quantize", "quantize_dynamic", "quantize_qat",
)  # fmt: skip

__all__ = ["DeQuantStub", "FakeQuantizeBase", "ObserverBase", "QuantStub", *_REFUSED]


class _Marker(Module):
    def __init__(self, qconfig: Any | None = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        """Return the input, as long as the model is not quantized."""
        return x


class QuantStub(_Marker):
    """Marks where a quantized model quantizes; in a float model, it returns its input."""


class DeQuantStub(_Marker):
    """Marks where a quantized model returns to floating point; in a float model, it returns its
    input.
    """


class _Quantizer(Module):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        raise RuntimeError(f"torch.ao.quantization.{type(self).__name__}: there are no quantized tensors on Candelabra")


class FakeQuantizeBase(_Quantizer):
    """The base of modules that imitate quantization; there are none."""


class ObserverBase(_Quantizer):
    """The base of modules that observe ranges for quantization; there are none."""


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(*arguments: Any, **options: Any) -> NoReturn:
        raise RuntimeError(
            f"torch.ao.quantization.{name}(): there are no quantized tensors on Candelabra; bfloat16 and autocast make models "
            "smaller and faster"
        )

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


globals().update({name: _refusing(name) for name in _REFUSED})
