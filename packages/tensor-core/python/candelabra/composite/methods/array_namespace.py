"""The methods of the array API standard."""

from __future__ import annotations

from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor
    from candelabra.types import Device


@function(name="__array_namespace__", package=False)
def array_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """Return the namespace of the array API standard, `candelabra.array_api`.

    Parameters
    ----------
    api_version : str, optional
        A version of the standard: ``"2024.12"`` or an earlier one.

    Raises
    ------
    ValueError
        If that version is not served.
    ModuleNotFoundError
        If candelabra-array-api is not installed.

    Examples
    --------
    >>> import candelabra
    >>> xp = candelabra.ones(2).__array_namespace__()  # doctest: +SKIP
    >>> xp.concat([xp.zeros(1), candelabra.ones(2)])  # doctest: +SKIP
    Array([0., 1., 1.])
    """
    from candelabra.array_api import array_object

    return array_object.namespace(api_version)


@function(package=False)
def to_device(self: Tensor, device: Device, *, stream: Any = None) -> Tensor:
    """Move the tensor to a device, as in the array API standard; the tensor itself if it is there.

    Raises
    ------
    ValueError
        If a stream is given. The backend's current stream orders the work.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ones(2).to_device("cpu")
    tensor([1., 1.])
    """
    if stream is not None:
        raise ValueError("to_device(): stream must be None: work is ordered by the backend's current stream")
    return self.to(device)
