"""Timing pieces of code: :class:`Timer`, what it measures, and tables that compare."""

from .compare import Compare
from .measurement import Measurement
from .timer import Timer, timer

__all__ = ["Compare", "Measurement", "Timer", "timer"]
