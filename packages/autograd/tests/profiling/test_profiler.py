"""Test the profiler: recorded events, averages and exports."""

from __future__ import annotations

import gzip
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
    assert candelabra._C.set_dispatch_hook(None) is None


def test_a_schedule_of_steps(tmp_path):
    from candelabra.autograd.profiling import ProfilerAction, profile, schedule, tensorboard_trace_handler

    plan = schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=1)
    none, warm, record, save = ProfilerAction
    assert [plan(step) for step in range(7)] == [none, none, warm, record, save, none, none]
    ready = []

    def handle(taken):
        ready.append([event.name for event in taken.events() if event.is_user_annotation])
        tensorboard_trace_handler(str(tmp_path), "worker", use_gzip=True)(taken)

    with profile(schedule=plan, on_trace_ready=handle, with_stack=True) as taken:
        taken.add_metadata("who", "test")
        for _ in range(7):
            candelabra.ones(2).sin()
            taken.step()
    assert ready == [["ProfilerStep#3", "ProfilerStep#4"]]
    assert sum(event.name == "sin" for event in taken.events()) == 2
    (path,) = tmp_path.iterdir()
    trace = json.loads(gzip.decompress(path.read_bytes()))
    assert trace["who"] == "test" and len(trace["traceEvents"]) == len(taken.events())
    taken.export_stacks(tmp_path / "stacks")
    assert ";sin " in (tmp_path / "stacks").read_text()
    with pytest.raises(ValueError, match="schedule arguments"):
        schedule(wait=-1, warmup=0, active=1)
    with pytest.raises(RuntimeError, match="no cycle"):
        profile().events()


def test_everything_without_a_schedule():
    from candelabra.autograd.profiling import profile

    with profile(activities=[candelabra.profiler.ProfilerActivity.CPU]) as taken:
        candelabra.ones(2).sin()
    assert [average.count for average in taken.key_averages() if average.key == "sin"] == [1]
