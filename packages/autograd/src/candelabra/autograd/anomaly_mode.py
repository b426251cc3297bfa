"""Anomaly detection, re-exported under PyTorch's module name."""

from .anomaly import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]
