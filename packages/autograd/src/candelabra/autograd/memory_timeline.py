"""The memory timeline of a profile as a page: bytes over time, and what allocated most."""

from __future__ import annotations

import gzip
import json
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .profiler import FunctionEvent

#: The size of the picture, and the room for its labels, in pixels.
_WIDTH, _HEIGHT, _LEFT, _BELOW = 1100, 320, 90, 30
#: The rows of the table.
_LARGEST = 20


class Point(NamedTuple):
    """The allocated bytes of a device at a time, in microseconds, and the operator before it."""

    time: float
    allocated: int
    name: str
    growth: int
    stack: tuple[str, ...] = ()


def points(events: Iterable[FunctionEvent], device: str | None = None) -> list[Point]:
    """Return the points of a profile with ``profile_memory=True``.

    Parameters
    ----------
    events
        The events of the profile.
    device
        The device; by default that of the first event.

    Raises
    ------
    RuntimeError
        If no memory of the device was measured.
    """
    measured = sorted((event for event in events if event.device is not None), key=lambda event: event.start)
    if measured and device is None:
        device = measured[0].device
    measured = [event for event in measured if event.device == device]
    if not any(event.allocated or event.allocated_before for event in measured):
        where = f" of {device}" if device is not None else ""
        raise RuntimeError(f"no memory{where} was measured: give profile_memory=True, and a device with statistics")
    begin = measured[0].start
    found = []
    for event in measured:
        found.append(Point((event.start - begin) / 1000, event.allocated_before, "", 0))
        growth = event.allocated - event.allocated_before
        found.append(Point((event.end - begin) / 1000, event.allocated, event.name, growth, tuple(event.stack)))
    return sorted(found, key=lambda point: point.time)


def write(events: Iterable[FunctionEvent], path: str | Path, device: str | None = None) -> None:
    """Write the timeline: a page for ``.html``; times, bytes and names for ``.json``, ``.json.gz``.

    Raises
    ------
    ValueError
        If the path ends otherwise.
    """
    path = Path(path)
    if not path.name.endswith((".html", ".json", ".json.gz")):
        raise ValueError(
            f"export_memory_timeline(): expected a path of .html, .json or .json.gz, but got {path.name!r}"
        )
    found = points(events, device)
    if path.name.endswith(".html"):
        path.write_text(page(found), encoding="utf-8")
        return
    text = json.dumps([[p.time for p in found], [p.allocated for p in found], [p.name for p in found]])
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if abs(count) < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.2f} GB"


def _picture(found: list[Point]) -> str:
    peak = max(found, key=lambda point: point.allocated)
    last = found[-1].time or 1.0
    width, height = _WIDTH - _LEFT - 10, _HEIGHT - _BELOW - 20

    def x(time: float) -> str:
        return f"{_LEFT + width * time / last:.1f}"

    def y(allocated: float) -> str:
        return f"{10 + height * (1 - allocated / peak.allocated):.1f}"

    steps, before = [f"{x(0)},{y(0)}"], 0
    for point in found:
        steps += [f"{x(point.time)},{y(before)}", f"{x(point.time)},{y(point.allocated)}"]
        before = point.allocated
    steps.append(f"{x(last)},{y(0)}")
    lines: list[str] = []
    for part in (0, 0.25, 0.5, 0.75, 1):
        level = y(peak.allocated * part)
        lines.append(f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{level}" y2="{level}" class="grid"/>')
        lines.append(f'<text x="{_LEFT - 6}" y="{level}" text-anchor="end">{_size(peak.allocated * part)}</text>')
        lines.append(
            f'<text x="{x(last * part)}" y="{_HEIGHT - 8}" text-anchor="middle">{last * part / 1000:.2f} ms</text>'
        )
    mark = f'<circle cx="{x(peak.time)}" cy="{y(peak.allocated)}" r="4"><title>{escape(peak.name)}</title></circle>'
    shape = f'<polygon points="{" ".join(steps)}"/>'
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}">{"".join(lines)}{shape}{mark}</svg>'


_STYLE = """
body{font:14px sans-serif;margin:2em auto;max-width:1100px;color:#222;background:#fff}
svg{width:100%} polygon{fill:#4c78a880;stroke:#4c78a8} circle{fill:#e45756} .grid{stroke:#ddd}
text{font-size:11px;fill:#555} td,th{padding:.2em .8em;text-align:right} td:first-child,th:first-child{text-align:left}
@media (prefers-color-scheme:dark){body{color:#ddd;background:#1b1b1b} .grid{stroke:#444} text{fill:#aaa}}
"""


def page(found: list[Point]) -> str:
    """Return the page of a timeline: it needs no other file and no network."""
    peak = max(found, key=lambda point: point.allocated)
    growing: list[Any] = sorted((point for point in found if point.growth > 0), key=lambda point: -point.growth)
    rows = "".join(
        f"<tr><td>{escape(p.name)}</td><td>{p.time / 1000:.3f} ms</td><td>{_size(p.growth)}</td><td>{_size(p.allocated)}</td>"
        f"<td>{escape(p.stack[0]) if p.stack else ''}</td></tr>"
        for p in growing[:_LARGEST]
    )
    where = f" in {escape(peak.name)}" if peak.name else ""
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Memory timeline</title><style>{_STYLE}</style></head>'
        f"<body><h1>Memory timeline</h1><p>Peak {_size(peak.allocated)} after {peak.time / 1000:.3f} ms{where}. "
        f"{_size(found[-1].allocated)} at the end.</p>{_picture(found)}<h2>The largest allocations</h2>"
        f"<table><tr><th>operator</th><th>time</th><th>allocated</th><th>then held</th><th>line</th></tr>{rows}</table>"
        "</body></html>\n"
    )
