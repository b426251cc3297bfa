"""One rank dies. The others must not wait for it: a thread of theirs, as a launcher's health
channel, or a time limit ends the wait.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

from checks import Ranks, raised

import candelabra


def watch(ranks: Ranks, process: int, message: str) -> None:
    """Tell the engine when a process has ended."""
    descriptor = os.pidfd_open(process)
    select.select([descriptor], [], [])
    ranks.engine.fail(message)


def wait_for_the_lost(ranks: Ranks, how: str) -> None:
    processes = candelabra.zeros(ranks.size, dtype=candelabra.int64)
    ranks.world.run("all_gather", candelabra.tensor([os.getpid()]), processes)
    lost = ranks.size - 1
    tensor = candelabra.ones(300_000)
    ranks.world.run("all_reduce", tensor, tensor)
    group = ranks.engine.communicator(range(ranks.size), 1, "other", 1.0 if how == "limit" else None)
    message = f"rank {lost} was killed"
    if ranks.rank == lost:
        time.sleep(0.3)  # the others wait by now
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "limit":
        raised(TimeoutError, "timed out after 1000 ms", group.run, "all_reduce", tensor, tensor)
        return
    threading.Thread(target=watch, args=(ranks, processes[lost].item(), message), daemon=True).start()
    if how == "request":
        request = group.start("all_reduce", tensor, tensor)
        assert group.start("barrier").done() is False
        raised(RuntimeError, message, request.wait)
        assert request.done()
    elif how == "new_group":
        raised(RuntimeError, message, ranks.engine.communicator, range(ranks.size), 2, "third", 30.0)
    elif how == "receive":
        raised(RuntimeError, message, group.run, "receive", None, tensor, "sum", lost)
    else:
        raised(RuntimeError, message, group.run, "all_reduce", tensor, tensor)
    raised(RuntimeError, message, ranks.world.run, "all_reduce", tensor, tensor)
    raised(RuntimeError, message, ranks.world.start, "barrier")
    raised(RuntimeError, message, ranks.engine.communicator, range(ranks.size), 3, "late", 30.0)
    group.close()


def main() -> None:
    ranks = Ranks()
    started = time.monotonic()
    found = ""
    try:
        wait_for_the_lost(ranks, sys.argv[2])
    except Exception:
        found = traceback.format_exc()
    seconds = time.monotonic() - started
    if seconds > 10:
        found = found or f"it took {seconds} seconds"
    (Path(sys.argv[1]) / f"{ranks.rank}.json").write_text(json.dumps({"found": found}))


if __name__ == "__main__":
    main()
