"""Pickling of tensors and storages for other processes: memory is shared, not copied."""

from __future__ import annotations

import errno
import os
from multiprocessing import context, reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any

import candelabra
from candelabra import _C
from candelabra.composite.methods.storage_methods import bytes_of
from candelabra.composite.methods.tensor_protocol import tensor_on

from . import device_memory, memory, messages
from .named_files import NamedFile, SenderGoneError
from .shared_files import AnonymousFile


def reduce_storage(storage: Any) -> Any:
    """Pickle a storage as a reference to its memory, which is moved to shared memory if needed."""
    if not memory.on_host(storage):
        if device_memory.can_be_sent(storage.device.type):
            return device_memory.reduce_storage(storage)
        raise RuntimeError(
            f"memory of device {storage.device} cannot be shared between processes: its backend offers no handles for that; send "
            "tensor.cpu()"
        )
    file = memory.file_of(memory.share(storage))
    described = (storage.nbytes(), str(storage.device))
    message = messages.outgoing() if context.get_spawning_popen() is None else None
    if isinstance(file, NamedFile):
        name = file.send()
        if message is not None:
            message.names.append(name)
        return rebuild_named, (name, *described)
    # An anonymous file, or the mapping of from_file().
    assert file is not None and file.descriptor is not None
    if message is not None:
        return rebuild_received, (message.add(file), *described)
    # A process being started inherits the descriptor. Over other pipes, the receiver requests it
    # from this process.
    return rebuild_asked_for, (reduction.DupFd(file.descriptor), *described)


def _mapped(file: Any, descriptor: int, nbytes: int, device: str) -> Any:
    try:
        return _C.map_storage(descriptor, nbytes, file, device)
    except OSError as error:
        if error.errno == errno.ENOMEM:
            raise candelabra.OutOfMemoryError(
                f"cannot map {nbytes} bytes of shared memory: {error.strerror}"
            ) from error
        raise


def rebuild_received(number: int, nbytes: int, device: str) -> Any:
    """Map memory whose descriptor was sent with the message."""
    file = AnonymousFile(messages.incoming().take(number))
    return _mapped(file, file.descriptor, nbytes, device)


def rebuild_asked_for(duplicate: Any, nbytes: int, device: str) -> Any:
    """Map memory whose descriptor is inherited, or requested from the sender."""
    try:
        file = AnonymousFile(duplicate.detach())
    except (ConnectionError, EOFError, FileNotFoundError) as error:
        raise SenderGoneError(
            "the process that sent this tensor has ended, and the shared memory with it. Queues and pipes of candelabra.multiprocessing "
            "keep what was sent; with others, the sender has to live until its messages are read"
        ) from error
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise memory.out_of_descriptors(error) from error
        raise
    return _mapped(file, file.descriptor, nbytes, device)


def rebuild_named(sent: str, nbytes: int, device: str) -> Any:
    """Map memory whose file name was sent with the message."""
    try:
        file, descriptor = NamedFile.receive(sent)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise memory.out_of_descriptors(error) from error
        raise
    try:
        return _mapped(file, descriptor, nbytes, device)
    finally:
        os.close(descriptor)


def reduce_tensor(tensor: Any) -> Any:
    """Pickle a tensor as a view of its storage; gradients and graph are not sent."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
            "boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it on the "
            "queue)."
        )
    attributes = dict(tensor.__dict__) or None
    geometry = (tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
    return rebuild_tensor, (tensor.untyped_storage(), *geometry, tensor.requires_grad, attributes)


def rebuild_tensor(
    storage: Any,
    dtype: Any,
    size: Any,
    stride: Any,
    offset: int,
    requires_grad: bool,
    attributes: dict[str, Any] | None,
) -> Any:
    """Return a tensor on a storage."""
    made = tensor_on(bytes_of(storage), dtype, size, stride, offset)
    if requires_grad:
        made.requires_grad = True
    if attributes:
        made.__dict__.update(attributes)
    return made


def init_reductions() -> None:
    """Register reductions that share the memory of tensors; called when the package is imported."""
    # Subclasses and parameters are pickled through plain tensors or storages.
    ForkingPickler.register(_C.Tensor, reduce_tensor)
    ForkingPickler.register(_C.Storage, reduce_storage)
