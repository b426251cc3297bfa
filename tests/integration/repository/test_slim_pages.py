"""Test tools/slim_pages.py on small pages and sites."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[3] / "tools" / "slim_pages.py"
spec = importlib.util.spec_from_file_location("slim_pages", TOOL)
assert spec is not None
assert spec.loader is not None
slim_pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(slim_pages)


def test_unindent_removes_the_indentation_of_the_theme():
    page = "<div>\n    <p>one\n      two</p>\n\n\n  </div>\n"
    assert slim_pages.unindent(page) == "<div>\n<p>one\ntwo</p>\n</div>\n"


def test_unindent_keeps_what_is_preformatted():
    code = '<pre class="x"><span>def f():</span>\n\n    return 1\n</pre>'
    script = "<script>\n  let text = `\n    x`;\n</script>"
    page = f"<div>\n  {code}\n  {script}\n  <p>  end</p></div>"
    assert slim_pages.unindent(page) == f"<div>\n{code}\n{script}\n<p>  end</p></div>"
    assert slim_pages.unindent(slim_pages.unindent(page)) == slim_pages.unindent(page)


def test_finish_writes_the_icons_once(tmp_path):
    theme, site = tmp_path / "theme", tmp_path / "site"
    (theme / "partials").mkdir(parents=True)
    (theme / "partials" / "icons.html").write_text('<svg>\n  <symbol id="svg-toc"/>\n</svg>\n')
    (site / "_static").mkdir(parents=True)
    (site / "index.html").write_text("<body>\n  <p>text</p>\n</body>")
    slim_pages.finish(theme, site)
    assert (site / "_static" / "icons.js").read_text() == (
        'document.body.insertAdjacentHTML("afterbegin", "<svg>\\n<symbol id=\\"svg-toc\\"/>\\n</svg>\\n");\n'
    )
    assert (site / "index.html").read_text() == "<body>\n<p>text</p>\n</body>"


def test_colors_are_in_one_file(tmp_path):
    head = '<html data-content_root="../">\n<head>{}</head>\n<body>\n</body>\n</html>'
    style = "<style>\n  body {\n    --color-code-background: #fff;\n  \n  }\n</style>"
    link = '<link rel="stylesheet" href="../_static/colors.css">'
    assert slim_pages.link_colors(head.format(style), tmp_path) == head.format(link)
    assert (tmp_path / "colors.css").read_text() == "body {\n--color-code-background: #fff;\n}\n"
    other = head.format("<style>\np { color: red }\n</style>")
    assert slim_pages.link_colors(other, tmp_path) == other


def test_the_size_counts_blocks_and_has_a_limit(tmp_path):
    (tmp_path / "reference").mkdir()
    (tmp_path / "reference" / "a.html").write_bytes(b"x" * 4097)
    (tmp_path / "index.html").write_bytes(b"x")
    assert slim_pages.sizes(tmp_path) == {"reference/*.html": 8192, "/*.html": 4096}
    assert subprocess.run([sys.executable, TOOL, tmp_path]).returncode == 0
    (tmp_path / "large.png").write_bytes(bytes(slim_pages.LIMIT))
    assert subprocess.run([sys.executable, TOOL, tmp_path]).returncode == 1
