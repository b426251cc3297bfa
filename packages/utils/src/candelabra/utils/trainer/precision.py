"""Mixed precision: autocast for the forward pass, and gradient scaling for float16."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import candelabra
from candelabra import amp

#: Names that are accepted instead of a dtype.
NAMES = {
    "float32": None, "32": None, "full": None,
    "bfloat16": "bfloat16", "bf16": "bfloat16",
    "float16": "float16", "half": "float16", "fp16": "float16", "16": "float16",
}  # fmt: skip


class Precision:
    """Compute dtype of the forward pass, and the gradient scaler that it needs.

    Parameters
    ----------
    dtype : str, dtype or None
        None or ``"float32"`` computes in the dtypes of the parameters. ``"bfloat16"`` and
        ``"float16"`` use `candelabra.amp.autocast`, which computes matrix products and convolutions
        in that dtype. The exponent range of float16 is so small that gradients underflow, so they
        are scaled by a `candelabra.amp.GradScaler`.
    device_type : str
        The device type of the forward pass, such as ``"cpu"``.
    scaler : GradScaler, optional
        A custom scaler.

    Raises
    ------
    ValueError
        If the dtype is not supported.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.utils.trainer import Precision
    >>> precision = Precision("bfloat16", "cpu")
    >>> with precision.forward():
    ...     (candelabra.ones(2, 2) @ candelabra.ones(2, 2)).dtype
    candelabra.bfloat16
    """

    def __init__(self, dtype: Any = None, device_type: str = "cpu", scaler: Any = None) -> None:
        if isinstance(dtype, str | int):
            if str(dtype) not in NAMES:
                raise ValueError(f"precision must be 'float32', 'bfloat16' or 'float16', but got {dtype!r}")
            name = NAMES[str(dtype)]
            dtype = None if name is None else getattr(candelabra, name)
        if dtype == candelabra.float32:
            dtype = None
        if dtype not in (None, candelabra.bfloat16, candelabra.float16):
            raise ValueError(f"precision must be float32, bfloat16 or float16, but got {dtype}")
        self.dtype = dtype
        self.device_type = device_type
        if scaler is None and dtype == candelabra.float16:
            scaler = amp.GradScaler(device_type)
        self.scaler = scaler

    def forward(self) -> Any:
        """Return the context manager for the forward pass and the loss."""
        return nullcontext() if self.dtype is None else amp.autocast(self.device_type, dtype=self.dtype)

    def backward(self, loss: Any) -> None:
        """Compute the gradients of the loss, scaled if there is a scaler."""
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()

    def unscale(self, optimizer: Any) -> None:
        """Unscale the gradients, which is required before clipping."""
        if self.scaler is not None:
            self.scaler.unscale_(optimizer)

    def step(self, optimizer: Any) -> bool:
        """Step the optimizer; return False if an overflow made the scaler skip the step."""
        if self.scaler is None:
            optimizer.step()
            return True
        before = self.scaler.get_scale()
        self.scaler.step(optimizer)
        self.scaler.update()
        return bool(self.scaler.get_scale() >= before)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the scaler."""
        return {} if self.scaler is None else dict(self.scaler.state_dict())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of the scaler."""
        if self.scaler is not None and state:
            self.scaler.load_state_dict(state)
