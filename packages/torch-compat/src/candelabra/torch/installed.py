"""Importing this installs the hook: what Python's fork server imports before it forks children."""

from .finder import install

install()
