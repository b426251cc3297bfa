"""Files changed at random give an object or raise FileError: some of those that tests/fuzz/files.py
loads by the million.
"""

from __future__ import annotations

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import file_mutations

#: Of each format.
FILES = 700


@pytest.fixture(scope="module")
def fuzzer():
    return file_mutations.Fuzzer(seed=20260)


def test_what_is_changed_loads_unchanged(fuzzer):
    import io

    import candelabra as c

    for files in fuzzer.files.values():
        for data in files:
            file_mutations.use(c.load(io.BytesIO(data)))


@pytest.mark.parametrize("kind", list(file_mutations.STRUCTURED))
def test_changed_files(fuzzer, kind):
    at = fuzzer.formats.index(kind)
    before = dict(fuzzer.counts)
    with file_mutations.Limits() as limits:
        for number in range(at, FILES * len(fuzzer.formats), len(fuzzer.formats)):
            limits.again()
            fuzzer.run(number)
    made = {name: count - before.get(name, 0) for name, count in fuzzer.counts.items() if name.startswith(f"{kind} ")}
    # Both ends are reached: what is whole is loaded, what is not is refused.
    assert sum(made.values()) == FILES and made[f"{kind} loaded"] > 5 and made[f"{kind} refused"] > 100


def test_a_mutation_can_be_had_again(fuzzer):
    other = file_mutations.Fuzzer(fuzzer.seed)
    assert [fuzzer.make(number) for number in range(60)] == [other.make(number) for number in range(60)]
