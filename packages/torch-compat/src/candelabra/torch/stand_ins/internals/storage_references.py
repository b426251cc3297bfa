"""``torch.multiprocessing.reductions``: weak references to storages."""

from __future__ import annotations

from candelabra import _C, UntypedStorage

__all__ = ["StorageWeakRef"]


class StorageWeakRef:
    """A weak reference to the memory of a storage. References to one memory are equal.

    Parameters
    ----------
    storage
        The storage.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.torch.stand_ins.internals.storage_references import StorageWeakRef
    >>> x = candelabra.ones(2)
    >>> reference = StorageWeakRef(x.untyped_storage())
    >>> reference == StorageWeakRef(x[1:].untyped_storage())
    True
    >>> del x
    >>> reference.expired()
    True
    """

    __slots__ = ("cdata",)

    def __init__(self, storage: UntypedStorage) -> None:
        self.cdata: int = _C.watch_storage(storage)

    @classmethod
    def from_weakref(cls, cdata: int) -> StorageWeakRef:
        """Return a reference to the memory that another one, with the number `cdata`, refers to."""
        made = cls.__new__(cls)
        made.cdata = cdata
        return made

    def expired(self) -> bool:
        """Return whether the memory is gone."""
        return not _C.is_storage_alive(self.cdata)

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageWeakRef) and self.cdata == other.cdata
