"""Test timers, measurements, comparison tables and collect_env."""

import subprocess
import sys

import pytest

import candelabra
from candelabra.utils.benchmark import Compare, Measurement, Timer
from candelabra.utils.collect_env import get_env_info, pretty_str


class Clock:
    """A clock that only the timed statement advances."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def work(self):
        self.now += 0.001


def timer(clock, **options):
    return Timer("clock.work()", timer=clock, globals={"clock": clock}, **options)


def test_times_are_of_one_run():
    clock = Clock()
    assert timer(clock).timeit(50).median == pytest.approx(0.001)
    blocks = []
    measured = timer(clock).blocked_autorange(lambda number, taken: blocks.append((number, taken)), min_run_time=0.2)
    assert measured.median == pytest.approx(0.001)
    assert sum(taken for _, taken in blocks) >= 0.2
    assert len(blocks) == len(measured.raw_times)
    assert timer(clock).adaptive_autorange().iqr == pytest.approx(0, abs=1e-9)


def test_threads_are_as_asked_and_put_back():
    before = candelabra.get_num_threads()
    seen = []
    Timer("seen.append(candelabra.get_num_threads())", globals={"seen": seen}, num_threads=1).timeit(3)
    assert set(seen) == {1}
    assert candelabra.get_num_threads() == before
    with pytest.raises(ValueError, match="str"):
        Timer(print)


def test_measurement():
    one = Measurement(2, [2.0, 4.0, 6.0, 8.0, 10.0], stmt="f()")
    assert (one.median, one.mean, one.iqr) == (3.0, 3.0, 2.0)
    assert one.has_warnings
    assert "Median: 3.00 s" in repr(one)
    merged = Measurement.merge([one, Measurement(1, [7.0], stmt="f()"), Measurement(1, [1.0], stmt="g()")])
    assert [len(group.times) for group in merged] == [6, 1]
    with pytest.raises(ValueError, match="at least one run"):
        Measurement(0, [])


def test_table():
    rows = [
        Measurement(1, [1e-6 * n], label="add", sub_label=str(n), description=d)
        for n in (1, 20)
        for d in ("ours", "theirs")
    ]
    table = str(Compare(rows[:3]))
    assert table.splitlines()[0].strip("[-] ") == "add"
    assert [line.split() for line in table.splitlines()[1:5]] == [
        ["ours", "theirs"],
        ["1", "thread:"],
        ["1", "1.00", "1.00"],
        ["20", "20.00"],
    ]
    assert table.endswith("Times are in us.")
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        Compare([1])


def test_environment():
    info = get_env_info()
    assert info.candelabra_version == candelabra.__version__
    assert sys.version.split()[0] in info.python_version
    assert info.memory_gib > 0
    printed = subprocess.run(
        [sys.executable, "-m", "candelabra.utils.collect_env"], capture_output=True, text=True, check=True
    ).stdout
    assert (
        printed.splitlines()[0] == pretty_str(info).splitlines()[0] == f"Candelabra version: {candelabra.__version__}"
    )
