"""The profiler: what is noted, how it is added up and written out."""

from __future__ import annotations

import json

import pytest

import candelabra
from candelabra.autograd import profiler


def test_calls_are_counted_and_timed():
    x = candelabra.ones(10, 10, requires_grad=True)
    with profiler.profile(record_shapes=True, profile_memory=True) as profile:
        (x @ x).exp().sum().backward()
        y = candelabra.zeros(3)
        y.add_(1)
        y[0] = 5
    counts = {average.key: average.count for average in profile.key_averages()}
    assert counts["exp"] == 1 and counts["mm"] == 3 and counts["fill_"] >= 1
    events = {event.name: event for event in profile.function_events}
    assert events["exp"].input_shapes == [[10, 10]]
    assert events["exp"].cpu_memory_usage == 400
    assert events["add_"].cpu_memory_usage == 0
    assert all(event.cpu_time_total >= 0 and event.end >= event.start for event in profile.function_events)
    assert profile.self_cpu_time_total == pytest.approx(profile.total_average().self_cpu_time_total)


def test_nothing_is_noted_outside():
    with profiler.profile() as profile:
        pass
    _ = candelabra.ones(2) + 1
    assert list(profile.function_events) == []
    with profiler.profile(enabled=False) as nothing:
        _ = candelabra.ones(2) + 1
    assert nothing is None


def test_calls_that_a_call_makes_are_its_own():
    x = candelabra.randn(3, 4)
    with profiler.profile() as profile, profiler.record_function("outer"):
        x.add(1)
        with profiler.record_function("inner"):
            x.mul(2)
    events = {event.name: event for event in profile.function_events}
    assert events["mul"].cpu_parent is events["inner"]
    assert events["inner"].cpu_parent is events["outer"]
    assert {child.name for child in events["outer"].cpu_children} == {"add", "inner"}
    assert events["outer"].self_cpu_time_total < events["outer"].cpu_time_total
    assert events["outer"].is_user_annotation and not events["mul"].is_user_annotation


def test_an_in_place_call_that_is_recorded_counts_once():
    x = candelabra.ones(2, requires_grad=True) * 1
    with profiler.profile() as profile:
        x.mul_(2)
    assert [event.name for event in profile.function_events].count("mul_") == 1


def test_table_and_trace(tmp_path):
    with profiler.profile(with_stack=True, record_shapes=True, profile_memory=True) as profile:
        for size in (2, 3):
            candelabra.ones(size).sin()
    table = profile.key_averages(group_by_input_shape=True).table(sort_by="count", row_limit=1, header="calls")
    assert table.startswith("calls") and "Self CPU time total" in table and "# of Calls" in table
    assert len([average for average in profile.key_averages(group_by_input_shape=True) if average.key == "sin"]) == 2
    assert "test_profiler.py" in profile.function_events[0].stack[0]
    assert "sin" in str(profile) and "sin" in profile.table(top_level_events_only=True)
    path = tmp_path / "trace.json"
    profile.export_chrome_trace(path)
    names = [event["name"] for event in json.loads(path.read_text())["traceEvents"]]
    assert names.count("sin") == 2
    with pytest.raises(ValueError, match="sort_by"):
        profile.table(sort_by="nothing")


def test_within_transformations():
    with profiler.profile() as profile:
        candelabra.vmap(candelabra.func.grad(lambda v: v.sin()))(candelabra.ones(3))
    assert {"sin", "cos", "mul"} <= {event.name for event in profile.function_events}


def test_errors():
    profile = profiler.profile()
    with pytest.raises(RuntimeError, match="didn't finish"):
        profile.key_averages()
    assert str(profile) == "<unfinished profile>"
    with profile:
        with pytest.raises(RuntimeError, match="already"), profiler.profile():
            pass
        with pytest.raises(ValueError, match="here"), profiler.record_function("block"):
            raise ValueError("here")
    with pytest.raises(RuntimeError, match="not reentrant"), profile:
        pass
    for refused in (profiler.emit_nvtx, profiler.emit_itt):
        with pytest.raises(NotImplementedError, match="export_chrome_trace"):
            refused()
    assert candelabra._C.set_interposer(None) is None
