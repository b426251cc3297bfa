"""Test the memory timeline of a profile."""

import gzip
import json

import pytest

import candelabra as c
from candelabra.autograd import memory_timeline
from candelabra.autograd.profiler import profile


@pytest.fixture(scope="module")
def events():
    x = c.ones(1 << 18, requires_grad=True)
    with profile(profile_memory=True, with_stack=True) as taken:
        y = x.exp()
        del y
        (x * 2).sum().backward()
    return taken.function_events


def test_bytes_grow_with_results_and_fall_after(events):
    found = memory_timeline.points(events)
    assert [point.time for point in found] == sorted(point.time for point in found)
    (exp,) = (point for point in found if point.name == "exp")
    assert exp.growth == 4 << 18
    after = found[found.index(exp) + 1]
    assert after.allocated <= exp.allocated - (4 << 18)


def test_a_page_says_the_peak_and_what_allocated(events, tmp_path):
    events.export_memory_timeline(tmp_path / "memory.html")
    page = (tmp_path / "memory.html").read_text()
    assert "<svg" in page
    assert "Peak " in page
    assert "<td>exp</td>" in page
    assert "test_memory_timeline.py" in page
    assert "http" not in page.replace("</html>", "")


def test_lists(events, tmp_path):
    events.export_memory_timeline(tmp_path / "memory.json", "cpu")
    times, allocated, names = json.loads((tmp_path / "memory.json").read_text())
    assert len(times) == len(allocated) == len(names)
    assert "exp" in names
    events.export_memory_timeline(tmp_path / "memory.json.gz")
    assert json.loads(gzip.decompress((tmp_path / "memory.json.gz").read_bytes())) == [times, allocated, names]


def test_of_the_scheduled_profile(tmp_path):
    with c.profiler.profile(profile_memory=True) as taken:
        c.ones(1000).exp()
    taken.export_memory_timeline(tmp_path / "memory.html")
    assert "Memory timeline" in (tmp_path / "memory.html").read_text()


def test_what_creates_tensors_is_on_their_device():
    with profile(profile_memory=True) as taken:
        kept = c.full((1 << 16,), 1.0)
    assert kept.numel() == 1 << 16
    assert {event.device for event in taken.function_events if event.device is not None} == {"cpu"}


def test_without_memory_it_says_what_to_give(tmp_path):
    with profile() as taken:
        c.ones(3)
    with pytest.raises(RuntimeError, match="profile_memory=True"):
        taken.export_memory_timeline(tmp_path / "memory.html")


def test_another_device_and_another_format(events, tmp_path):
    with pytest.raises(RuntimeError, match="no memory of cuda:0 was measured"):
        events.export_memory_timeline(tmp_path / "memory.html", "cuda:0")
    with pytest.raises(ValueError, match=r"\.html, \.json"):
        events.export_memory_timeline(tmp_path / "memory.png")
