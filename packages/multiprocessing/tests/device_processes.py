"""Functions for the processes of test_device_memory.py, which a fresh interpreter can import."""

from __future__ import annotations

import gc
import os
import time
from typing import Any

import candelabra as c
from candelabra import _C


def told(device: str) -> dict[str, int]:
    """Return the mock device's counters in this process."""
    text = _C.backend_info(device)["description"] if device in _C.loaded_device_types() else ""
    return {name: int(value) for name, value in (item.split("=") for item in (text or "").split() if "=" in item)}


def add_one(received: Any, answers: Any) -> None:
    """Add 1 to each tensor in place and send it back, until None arrives."""
    while (x := received.get()) is not None:
        x.add_(c.full((), 1.0).to(x.device).expand(x.shape))
        answers.put(x)
        del x


def fill(x: Any, value: float) -> None:
    x.fill_(value)
    c.accelerator.use(x.device.type)
    c.accelerator.synchronize(x.device)


def describe(things: Any) -> Any:
    """Describe two tensors on one storage as this process sees them."""
    a, b = things
    a.detach()[(0,) * a.ndim].fill_(99.0)
    return (
        tuple(a.shape), a.stride(), a.storage_offset(), str(a.device), a.is_shared(), b.cpu().tolist(),
        a.untyped_storage() is b.untyped_storage(), b.requires_grad, b.is_leaf,
    )  # fmt: skip


def keep(receiver: Any, answers: Any) -> None:
    """Keep received tensors. On request, report the first number, release the tensors, or end."""
    kept = receiver.recv()
    while True:
        word = answers.recv()
        if word == "end":
            return
        if word == "let go":
            kept = None
            gc.collect()
            answers.send("gone")
        elif word == "told":
            answers.send(told("shelf"))
        else:
            answers.send(kept.cpu().flatten()[0].item())


def pass_on(receiver: Any, sender: Any) -> None:
    """Forward what arrives to another process, and release it."""
    x = receiver.recv()
    x.add_(x)
    sender.send(x)
    del x
    gc.collect()
    receiver.recv()


def take_and_drop(receiver: Any, sender: Any) -> None:
    """Receive tensors, keep some and send others back, until this process is killed."""
    kept: list[Any] = []
    while True:
        x, y = receiver.recv()
        sender.send(y[1:])
        kept = [*kept[-2:], x]


def make_and_wait(device: str, sender: Any) -> None:
    """Send a tensor, and wait to be killed."""
    x = c.ones(4, device=device)
    sender.send(x)
    time.sleep(60)
    del x


def make_and_end(device: str, queue: Any) -> None:
    queue.put(c.ones(4, device=device))


def first_number(x: Any) -> Any:
    return x.cpu().flatten()[0].item()


def try_to_receive(receiver: Any, answers: Any) -> None:
    """Report the device and values of each received tensor, or the error, until None arrives."""
    while True:
        try:
            x = receiver.recv()
            if x is None:
                return
            answers.send(f"{x.device} {x.cpu().tolist()}")
        except RuntimeError as error:
            answers.send(str(error))


def use_after_fork(x: Any, sender: Any) -> None:
    """Report the error of using a device in a forked process."""
    try:
        x.fill_(1.0)
        c.ones(2, device=x.device)
        sender.send("nothing")
    except RuntimeError as error:
        sender.send(str(error))
    os._exit(0)
