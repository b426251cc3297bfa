"""float_index.hpp: floats as indices are in range whatever they are, compared with Python's
integers.
"""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path

import pytest

HEADERS = Path(__file__).parents[2] / "include"

PROGRAM = r"""
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "candelabra/float_index.hpp"

using namespace candelabra;

template <typename I, typename F>
void print(double value, long long low, long long high) {
  std::printf("%" PRId64 "\n", static_cast<int64_t>(index_from_float<I>(static_cast<F>(value), static_cast<I>(low), static_cast<I>(high))));
}

// A loop, which compilers make of whole registers.
[[gnu::noinline]] void many(const float* values, int32_t* found, int n, int32_t high) {
  for (int i = 0; i < n; ++i) found[i] = index_from_float(values[i], 0, high);
}

int main() {
  char text[64];
  long long low, high;
  while (std::scanf("%63s %lld %lld", text, &low, &high) == 3) {
    const double value = std::strtod(text, nullptr);
    print<int32_t, float>(value, low, high);
    print<int32_t, double>(value, low, high);
    print<int64_t, float>(value, low, high);
    print<int64_t, double>(value, low, high);
    std::printf("%d\n", index_or_outside<int32_t>(static_cast<float>(value), static_cast<float>(high)));
    float values[40];
    int32_t found[40];
    for (float& each : values) each = static_cast<float>(value);
    many(values, found, 40, static_cast<int32_t>(high));
    for (int32_t each : found) if (each != found[0]) return 1;
    std::printf("%d\n", found[0]);
  }
  for (double end : {3e38, 1.0, 1e-30, 1e-44}) {
    const EqualBins<float> range(-end, end, 30);
    const float high = static_cast<float>(end);
    std::printf("%d %d %d\n", range.bin_of(-high), range.bin_of(0.0f), range.bin_of(high));
  }
}
"""
NUMBERS = ["nan", "-nan", "inf", "-inf", "1e300", "-1e300", "3e38", "-3e38", "0", "-0.0", "0.5", "-0.5", "0.99", "1", "-1", "2.5", "6.999",
           "7", "7.5", "1e-310", "2147483647", "2147483648", "-2147483648", "-2147483904", "9223372036854775808", "-9223372036854775808",
           "16777216", "123456"]  # fmt: skip
BOUNDS = [(0, 0), (0, 7), (-3, 7), (5, 1000), (0, 16777217), (-16777217, 16777217), (0, 2147483520)]


def expected(value: float, low: int, high: int) -> int:
    if math.isnan(value):
        return low
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(math.trunc(value), low), high)


def rounded(text: str) -> float:
    """The number in float32; larger ones are infinite."""
    import numpy as np

    with np.errstate(over="ignore"):
        return float(np.float32(float(text)))


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("option", ["-O0 -fsanitize=float-cast-overflow -fno-sanitize-recover=all", "-O3"])
def test_index_from_float(tmp_path: Path, option: str) -> None:
    pytest.importorskip("numpy")
    (tmp_path / "program.cpp").write_text(PROGRAM)
    command = ["g++", "-std=c++20", *option.split(), f"-I{HEADERS}", "-o", "program", "program.cpp"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    if "cannot find" in built.stderr:
        pytest.skip("needs the sanitizer's library")
    assert built.returncode == 0, built.stderr
    cases = [(text, low, high) for text in NUMBERS for low, high in BOUNDS]
    given = "".join(f"{text} {low} {high}\n" for text, low, high in cases)
    done = subprocess.run(["./program"], cwd=tmp_path, input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for number, (text, low, high) in enumerate(cases):
        single, double = rounded(text), float(text)
        outside = math.trunc(single) if 0 <= single < float(rounded(str(high))) else -1
        wanted = [expected(single, low, high), expected(double, low, high)] * 2 + [outside, expected(single, 0, high)]
        assert [int(line) for line in lines[6 * number : 6 * number + 6]] == wanted, (text, low, high)
    assert lines[6 * len(cases) :] == ["0 15 29"] * 4
