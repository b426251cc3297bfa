"""Races of first uses in many threads, for the test suites of all packages.

A first use happens once in a process, so each scenario runs in fresh processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

__all__ = ["run_scenario"]

#: The number of processes that a test file starts in all; by default one per scenario.
PROCESSES = "CANDELABRA_FIRST_USE_PROCESSES"

# Prepended to each scenario. faulthandler's watchdog needs no GIL, so it also ends a process in
# which a thread waits for a C++ lock with the GIL held. The short switch interval provokes races.
_HARNESS = """
import faulthandler, sys, threading, traceback
faulthandler.dump_traceback_later({timeout}, exit=True)

def run_concurrently(action, threads=32):
    barrier = threading.Barrier(threads)
    results, failures = [None] * threads, []
    def run(number):
        barrier.wait()
        try:
            results[number] = action(number)
        except BaseException:
            failures.append(traceback.format_exc())
    workers = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    sys.setswitchinterval(1e-6)
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    sys.setswitchinterval(0.005)
    if failures:
        sys.exit(f"{{len(failures)}} of {{threads}} threads failed:\\n" + "\\n".join(failures[:3]))
    return results
"""


def run_scenario(code: str, scenarios: int, timeout: float = 60) -> None:
    """Run a scenario in fresh processes, and fail if one of them fails or hangs.

    Parameters
    ----------
    code
        Python source. ``run_concurrently(action, threads=32)`` calls ``action(number)`` in all
        threads at the same time and returns the results by number. It ends the process if a thread
        raises.
    scenarios
        The number of scenarios that share the processes which the environment variable
        ``CANDELABRA_FIRST_USE_PROCESSES`` allows.
    timeout
        The time limit of a process in seconds. On a timeout, the failure includes the stacks of its
        threads.

    Raises
    ------
    AssertionError
        If a process fails. The message includes its output.

    Examples
    --------
    >>> from candelabra.testing.first_use import run_scenario
    >>> run_scenario("assert run_concurrently(lambda number: number) == list(range(32))", 1)
    """
    wanted = int(os.environ.get(PROCESSES, "0"))
    source = _HARNESS.format(timeout=timeout) + textwrap.dedent(code)
    count = max(1, -(-wanted // scenarios))
    for number in range(1, count + 1):
        done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=timeout + 30)
        if done.returncode != 0:
            raise AssertionError(
                f"process {number} of {count} ended with status {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-12000:]}"
            )
