"""The report on a job that has failed."""

from __future__ import annotations

import signal
import socket
from datetime import UTC, datetime

from .workers import Worker

_WIDTH = 60


def report(script: str, failures: list[Worker], news: str | None) -> str:
    """Return the report, with the first failure on top.

    Parameters
    ----------
    script : str
        The program's name.
    failures : list of Worker
        The processes that have failed, in order.
    news : str or None
        What the ranks were told about the first failure.
    """
    lines = ["=" * _WIDTH, f"{script} FAILED", "-" * _WIDTH]
    if news is not None:
        lines.extend([f"First failure: {news}", "-" * _WIDTH])
    if failures:
        lines.append("Root cause (first observed failure):")
        lines.extend(_described(0, failures[0]))
        tail = failures[0].last_lines()
        if tail:
            lines.append("  end of stderr:")
            lines.extend(f"    {line}" for line in tail)
    if len(failures) > 1:
        lines.extend(["-" * _WIDTH, "Other failures:"])
        for number, worker in enumerate(failures[1:], 1):
            lines.extend(_described(number, worker))
    lines.append("=" * _WIDTH)
    return "\n".join(lines)


def _described(number: int, worker: Worker) -> list[str]:
    assert worker.status is not None
    when = datetime.fromtimestamp(worker.ended_at, UTC).strftime("%Y-%m-%d_%H:%M:%S")
    lines = [
        f"[{number}]:",
        f"  time      : {when}",
        f"  host      : {socket.gethostname()}",
        f"  rank      : {worker.rank} (local_rank: {worker.local_rank})",
        f"  exitcode  : {worker.status} (pid: {worker.process.pid})",
    ]
    if worker.status < 0:
        try:
            name = f" ({signal.Signals(-worker.status).name})"
        except ValueError:
            name = ""
        lines.append(f"  signal    : {-worker.status}{name}")
    return lines
