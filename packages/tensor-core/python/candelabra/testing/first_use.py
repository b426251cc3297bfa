"""First uses by many threads at once: what the test suites of all packages share.

What is loaded at first use can be raced for once in a process, so each scenario runs in fresh
processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

__all__ = ["run_scenario"]

#: How many processes a test file starts in all; by default each of its scenarios gets one.
PROCESSES = "CANDELABRA_FIRST_USE_PROCESSES"

# Stands above each scenario. faulthandler's watchdog needs no GIL, so it also ends a process in
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
    """Run a scenario in fresh processes, and fail where one of them fails or does not end.

    Parameters
    ----------
    code
        Python source. ``run_concurrently(action, threads=32)`` calls ``action(number)`` in all threads at
        once and returns the results by number. It ends the process where a thread raises.
    scenarios
        How many scenarios share the number of processes that the environment variable
        ``CANDELABRA_FIRST_USE_PROCESSES`` sets.
    timeout
        Seconds a process may take; then the stacks of its threads are part of the failure.

    Raises
    ------
    AssertionError
        If a process fails; with what it printed.

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
