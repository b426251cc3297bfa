"""How Sphinx builds the documentation: ``python3 -m nox -s docs``."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

import furo
import module_pages
import operator_pages
import slim_pages

project = "Candelabra"
author = copyright = "The Candelabra developers"
extensions = [
    "myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax", "sphinxcontrib.mermaid", "sphinx_design",
    "sphinx_copybutton", "sphinx_remove_toctrees",
]  # fmt: skip
exclude_patterns = ["_build", "jupyter_execute", ".jupyter_cache", "templates", "*.template.md"]

html_theme = "furo"
templates_path = ["templates"]
html_title = "Candelabra"
# The sources are in the repository: copies of them would be a third of the site.
html_copy_source = False
html_show_sphinx = False
# Without these, every page would list all pages of the reference, which would be most of the site.
remove_from_toctrees = ["reference/candelabra*", "reference/family-*", "reference/modules/candelabra*"]
html_sidebars = {
    "reference/*/*": ["sidebar/brand.html", "sidebar/search.html"],
    "reference/[!i]*": ["sidebar/brand.html", "sidebar/search.html"],
}
toc_object_entries = False

myst_heading_anchors = 4
# GitHub draws these fences, too.
myst_fence_as_directive = ["mermaid"]
# The tutorials run when the site is built, and a cell that fails stops the build.
nb_execution_mode = "cache"
nb_execution_timeout = 1200
nb_execution_raise_on_error = True
nb_merge_streams = True

napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_member_order = "groupwise"
autodoc_typehints = "none"
autodoc_mock_imports = ["tensorboard"]
autodoc_default_options = {"show-inheritance": True}

reference = Path(__file__).parent / "reference"
operator_pages.write(reference)
module_pages.write(reference / "modules")


def setup(app: Any) -> None:
    """Make the pages smaller at the end of a build that had no error."""

    def finish(app: Any, error: Exception | None) -> None:
        if error is None:
            slim_pages.finish(furo.THEME_PATH, Path(app.outdir))

    app.connect("build-finished", finish)
