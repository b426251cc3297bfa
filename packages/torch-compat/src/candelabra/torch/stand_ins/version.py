"""``torch.version``: no accelerator toolkit is compiled in, because backends bring their own."""

from __future__ import annotations

from .package import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

cuda: str | None = None
hip: str | None = None
xpu: str | None = None
debug = False
git_version = ""
