"""Checks of failures that end one communicator, in each rank. Others go on."""

from __future__ import annotations

import os
import signal
import threading
import time

from checks import Ranks, check, raised, run_checks

import candelabra


def communicator(ranks: Ranks, number: int, timeout: float | None):
    made = ranks.engine.communicator(range(ranks.size), number, "failing", timeout)
    ranks.world.run("barrier")
    return made


@check
def an_absent_rank(ranks: Ranks) -> None:
    group = communicator(ranks, 1, 0.3)
    tensor = candelabra.ones(4)
    if ranks.rank == 0:
        started = time.monotonic()
        raised(TimeoutError, "timed out after 300 ms", group.run, "all_reduce", tensor, tensor)
        assert 0.25 < time.monotonic() - started < 5.0
        text = "all_reduce(float32 4) (number 1) of communicator 'failing' (rank 0 of 2): timed out"
        raised(RuntimeError, text, group.run, "all_reduce", tensor, tensor)
        raised(RuntimeError, text, group.start, "all_reduce", tensor, tensor)
    ranks.world.run("barrier")
    group.close()
    ranks.world.run("all_reduce", tensor, tensor)  # the other communicator works


@check
def an_absent_rank_of_a_request(ranks: Ranks) -> None:
    group = communicator(ranks, 2, 20.0)
    tensor = candelabra.ones(4)
    if ranks.rank == 0:
        requests = [group.start("all_reduce", tensor, tensor), group.start("barrier")]
        raised(TimeoutError, "timed out after 200 ms", requests[0].wait, 0.2)
        raised(TimeoutError, "timed out", requests[1].wait)
        raised(TimeoutError, "timed out", requests[0].wait)  # again the same
        assert requests[0].done() and requests[1].done()
        group.timeout = 0.2
        assert group.timeout == 0.2
    ranks.world.run("barrier")
    group.close()


@check
def a_new_time_limit(ranks: Ranks) -> None:
    group = communicator(ranks, 3, None)
    if ranks.rank == 0:
        group.timeout = 0.2
        raised(TimeoutError, "after 200 ms", group.run, "barrier")
    ranks.world.run("barrier")
    group.close()


@check
def a_message_that_is_too_long(ranks: Ranks) -> None:
    group = communicator(ranks, 4, 10.0)
    if ranks.rank == 0:
        group.run("send", candelabra.ones(100), None, peer=1)
    else:
        raised(RuntimeError, "truncat", group.run, "receive", None, candelabra.ones(10), "sum", 0)
    ranks.world.run("barrier")
    group.close()


@check
def tensors_of_different_sizes(ranks: Ranks) -> None:
    group = communicator(ranks, 6, 20.0)
    tensor = candelabra.ones(300_000 + ranks.rank)
    text = f"all_reduce(float32 30000{1 - ranks.rank}, reduction 0) on rank {1 - ranks.rank}"
    raised(RuntimeError, text, group.run, "all_reduce", tensor, tensor)
    ranks.world.run("barrier")
    group.close()


@check
def an_interrupt(ranks: Ranks) -> None:
    group = communicator(ranks, 5, 20.0)
    tensor = candelabra.ones(4)
    if ranks.rank == 0:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        started = time.monotonic()
        raised(KeyboardInterrupt, "", group.run, "all_reduce", tensor, tensor)
        assert time.monotonic() - started < 5.0
        raised(RuntimeError, "was interrupted", group.run, "all_reduce", tensor, tensor)
    ranks.world.run("barrier")
    group.close()


@check
def an_interrupt_of_a_request(ranks: Ranks) -> None:
    group = communicator(ranks, 7, 20.0)
    tensor = candelabra.ones(4)
    if ranks.rank == 0:
        request = group.start("all_reduce", tensor, tensor)
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        raised(KeyboardInterrupt, "", request.wait)
        assert not request.done()
        group.close()
        raised(RuntimeError, "was aborted", request.wait)
    ranks.world.run("barrier")
    group.close()


@check
def an_aborted_communicator(ranks: Ranks) -> None:
    group = communicator(ranks, 8, 20.0)
    tensor = candelabra.ones(4)
    if ranks.rank == 0:
        request = group.start("all_reduce", tensor, tensor)
        group.close()
        raised(RuntimeError, "was aborted", request.wait)
    ranks.world.run("barrier")
    group.close()


@check
def a_forked_child(ranks: Ranks) -> None:
    tensor = candelabra.ones(4)
    group = communicator(ranks, 9, 20.0)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            raised(RuntimeError, "forked from", ranks.world.run, "all_reduce", tensor, tensor)
            raised(RuntimeError, "forked from", ranks.world.start, "all_reduce", tensor, tensor)
            group.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    group.run("all_reduce", tensor, tensor)
    group.close()


if __name__ == "__main__":
    run_checks()
