"""Keeps the site small, and says how large it is: ``python tools/slim_pages.py FOLDER``.

Furo repeats its icons in each page, which would be a third of the site. `write_icons` puts them
into one script, which docs/templates/partials/icons.html loads. `link_colors` puts the colors that
each page has into one file, and `unindent` removes the indentation of the theme's templates.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

#: What a site may take on disk, in bytes.
LIMIT = 28_000_000
#: What a file's size is rounded up to on disk.
BLOCK = 4096
#: Text whose spaces are shown, and scripts.
_KEPT = re.compile(r"(<(?:pre|script|style|textarea)\b.*?</(?:pre|script|style|textarea)>)", re.S)
#: The colors in the head of a page, after the place that its links start from.
_COLORS = re.compile(
    r'data-content_root="(?P<root>[./]*)".*?(?P<style><style>(?P<colors>\s*body \{\s*--color-code.*?)</style>)', re.S
)
_INDENTATION = re.compile(r"\s*\n\s*")


def write_icons(theme: Path, static: Path) -> None:
    """Write a theme's icons as a script that puts them into the page."""
    icons = (theme / "partials" / "icons.html").read_text(encoding="utf-8")
    text = f'document.body.insertAdjacentHTML("afterbegin", {json.dumps(unindent(icons))});\n'
    (static / "icons.js").write_text(text, encoding="utf-8")


def unindent(page: str) -> str:
    """Return a page without indentation and empty lines, apart from text that is preformatted."""
    parts = _KEPT.split(page)
    # The parts with odd numbers are those that the expression matches.
    return "".join(part if number % 2 else _INDENTATION.sub("\n", part) for number, part in enumerate(parts))


def link_colors(page: str, static: Path) -> str:
    """Return a page that links to the theme's colors, which are written to a file."""
    found = _COLORS.search(page)
    if found is None:
        return page
    (static / "colors.css").write_text(_INDENTATION.sub("\n", found["colors"]).strip() + "\n", encoding="utf-8")
    link = f'<link rel="stylesheet" href="{found["root"]}_static/colors.css">'
    return page[: found.start("style")] + link + page[found.end("style") :]


def finish(theme: Path, folder: Path) -> None:
    """Make the pages of a site smaller, once Sphinx has written them."""
    write_icons(theme, folder / "_static")
    for path in folder.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        if (smaller := unindent(link_colors(page, folder / "_static"))) != page:
            path.write_text(smaller, encoding="utf-8")


def sizes(folder: Path) -> Counter[str]:
    """Return the bytes on disk by kind of file and by the folder at the top that has it."""
    found: Counter[str] = Counter()
    for path in folder.rglob("*"):
        if path.is_file():
            inside = path.relative_to(folder)
            top = inside.parts[0] if len(inside.parts) > 1 else ""
            found[f"{top}/*{path.suffix}"] += -(-path.stat().st_size // BLOCK) * BLOCK
    return found


def main() -> int:
    """Print the size of a site, and fail if it is above the limit."""
    found = sizes(Path(sys.argv[1]))
    total = sum(found.values())
    for kind, size in found.most_common(6):
        print(f"{size / 1e6:8.1f} MB  {kind}")
    print(f"{total / 1e6:8.1f} MB  in all; the limit is {LIMIT / 1e6:.0f}")
    return int(total > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
