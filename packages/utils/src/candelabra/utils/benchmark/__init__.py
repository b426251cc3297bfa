"""Benchmarking: `Timer` measures statements, `Measurement` holds times, `Compare` prints tables."""

from .compare import Compare
from .measurement import Measurement
from .timer import Timer, timer

__all__ = ["Compare", "Measurement", "Timer", "timer"]
