"""Fixtures: jobs of several processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from programs import ENGINE, PRELUDE, environment


@dataclass
class Result:
    """What a job has printed, and its status."""

    status: int
    out: str
    errors: str
    seconds: float

    def lines(self, start: str) -> list[str]:
        return sorted(line.removeprefix(start).strip() for line in self.out.splitlines() if line.startswith(start))


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Callable[..., Result]]:
    """Run a program by the launcher: job(program, processes, *launcher_options, arguments=())."""
    started: list[subprocess.Popen[str]] = []

    def run(
        program: str,
        processes: int = 2,
        *options: str,
        arguments: tuple[str, ...] = (),
        timeout: float = 60,
        **variables: str,
    ) -> Result:
        # Jobs that run at once have files of their own.
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        script = folder / "program.py"
        script.write_text(PRELUDE + textwrap.dedent(program).replace("cpu:reference", ENGINE))
        launcher = [sys.executable, "-m", "candelabra.distributed.run", "--nproc-per-node", str(processes), *options]
        start = time.monotonic()
        process = subprocess.Popen(
            [*launcher, str(script), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env={**environment(), **variables},
            start_new_session=True,
        )
        started.append(process)
        try:
            out, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            out, errors = process.communicate(timeout=40)
            raise AssertionError(f"the job has not ended after {timeout} s\n{out}\n{errors}") from None
        return Result(process.returncode, out, errors, time.monotonic() - start)

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
