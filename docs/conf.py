"""How Sphinx builds the documentation: ``python3 -m nox -s docs``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

import operator_pages

project = "Candelabra"
author = "The Candelabra developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax", "sphinxcontrib.mermaid"]
html_theme = "furo"
html_title = "Candelabra"
exclude_patterns = ["_build", "*.template.md"]
myst_heading_anchors = 4
# GitHub draws these fences, too.
myst_fence_as_directive = ["mermaid"]
napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_member_order = "groupwise"
autodoc_typehints = "none"
autodoc_mock_imports = ["tensorboard"]
autodoc_default_options = {"members": True, "show-inheritance": True}
# One long page a module would otherwise list every method of every base class in the sidebar.
toc_object_entries = False

operator_pages.write(Path(__file__).parent / "reference")
