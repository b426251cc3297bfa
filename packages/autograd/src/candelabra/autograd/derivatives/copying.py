"""Gradients of copies and fills."""

from __future__ import annotations

from ..fitting import fit
from ..table import derivative
from .parts import zeros_like

derivative("clone", self=lambda grad: grad)
derivative("contiguous", may_return_self=True, self=lambda grad: grad)
derivative("_to_copy", may_return_self=True, self=lambda grad, self_like: fit(grad, self_like))
derivative("copy_", title="Copy", self=lambda grad: zeros_like(grad), src=lambda grad, src_like: fit(grad, src_like))
derivative("fill_", title="Fill", self=lambda grad: zeros_like(grad))
