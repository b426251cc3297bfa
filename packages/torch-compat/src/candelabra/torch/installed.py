"""Importing this module installs the hook; Python's fork server preloads it."""

from .finder import install

install()
