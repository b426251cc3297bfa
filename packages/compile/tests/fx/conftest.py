"""Tests of candelabra.fx need the CPU backend."""

from __future__ import annotations

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")
