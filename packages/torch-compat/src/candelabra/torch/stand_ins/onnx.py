"""``torch.onnx``: importable, but export is not supported."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["export", "is_in_onnx_export"]


def export(*arguments: Any, **options: Any) -> NoReturn:
    """Raise NotImplementedError, because there is no exporter."""
    raise NotImplementedError(
        "torch.onnx.export(): Candelabra does not export models; save the state dict with torch.save"
    )


def is_in_onnx_export() -> bool:
    """Return False, because there is no exporter."""
    return False
