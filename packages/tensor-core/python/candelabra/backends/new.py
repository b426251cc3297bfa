"""``python -m candelabra.backends new NAME``: writes a distribution with a working backend.

The templates are in the folder beside this module, in the wheel. Files that end in ``.in`` have
fields, ``@NAME@``; all others are copied.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import candelabra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

TEMPLATES = files("candelabra.backends") / "templates"
LANGUAGES = ("c", "cpp", "python")

#: Where the files of the folder "common" go, for a backend with a shared library.
LAYOUT = {
    "CMakeLists.txt.in": "CMakeLists.txt",
    "README.md.in": "README.md",
    "ci.yml.in": ".github/workflows/ci.yml",
    "gitignore.in": ".gitignore",
    "plugin.py.in": "python/@PACKAGE@/__init__.py",
    "pyproject.toml.in": "pyproject.toml",
    "test_backend.py.in": "tests/test_backend.py",
}
#: Files of "common" that a backend in Python does not have, or has in another form.
COMPILED_ONLY = ("CMakeLists.txt.in", "plugin.py.in", "pyproject.toml.in")

#: What CMakeLists.txt says about a language.
BUILDS = {
    "c": {"LANGUAGE": "C", "SUFFIX": "c", "STANDARD": "C_STANDARD 11"},
    "cpp": {"LANGUAGE": "CXX", "SUFFIX": "cpp", "STANDARD": "CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON"},
    "python": {},
}


def device_type_of(name: str) -> str:
    """Return the device type of a backend of this name: its letters and digits, in lower case.

    Raises
    ------
    ValueError
        If the name does not begin with a letter, or has other characters than letters, digits,
        ``-``, ``_`` and ``.``.

    Examples
    --------
    >>> from candelabra.backends.new import device_type_of
    >>> device_type_of("My-Device")
    'mydevice'
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", name):
        raise ValueError(f"'{name}' is not a name: a letter, then letters, digits, '-', '_' and '.'")
    device_type = re.sub(r"[^a-z0-9]", "", name.lower())
    if device_type in ("cpu", "cuda", "meta"):
        raise ValueError(f"'{device_type}' is a device type of Candelabra's own; choose another name")
    return device_type


def _target(part: str, name: str) -> str:
    """Return the path of a template's file in the distribution."""
    if part == "common":
        return LAYOUT[name]
    if part == "python":
        return "pyproject.toml" if name == "pyproject.toml.in" else f"src/@PACKAGE@/{name.removesuffix('.in')}"
    return f"src/{name.removesuffix('.in')}"


def _templates(language: str) -> dict[str, Traversable]:
    """Return the templates of a language by their paths in the distribution."""
    found = {}
    for part in ("common", language):
        for file in sorted((TEMPLATES / part).iterdir(), key=lambda file: file.name):
            if file.is_file() and not (part == "common" and language == "python" and file.name in COMPILED_ONLY):
                found[_target(part, file.name)] = file
    return found


def _purpose(text: str) -> str:
    """Return the first sentence of a source's first comment."""
    match = re.search(r'(?:/\*|"""|//)[\s*]*(.+?[.:])(?=\s)', text, re.S)
    return " ".join(re.sub(r"\n\s*(?:\*|//)", "\n", match[1]).split()).rstrip(".:") if match else ""


def write(name: str, language: str, folder: Path) -> list[Path]:
    """Write a distribution with a backend, and return its files.

    Parameters
    ----------
    name : str
        The name of the distribution. Its letters and digits are the device type.
    language : str
        ``"c"``, ``"cpp"`` or ``"python"``.
    folder : Path
        Where to write; it must not exist, or be empty.

    Raises
    ------
    FileExistsError
        If there are files in the folder.
    ValueError
        If the name makes no device type.
    """
    device_type = device_type_of(name)
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} has files already")
    templates = _templates(language)
    sources = {path: file.read_text() for path, file in templates.items() if path.startswith("src/")}
    fields = {
        "DEVICE": device_type,
        "DISTRIBUTION": name.lower().replace("_", "-").replace(".", "-"),
        "PACKAGE": re.sub(r"[^a-z0-9]+", "_", name.lower()),
        "CORE": ".".join(candelabra.__version__.split(".")[:2]),
        **BUILDS[language],
    }
    fields["FILES"] = "\n".join(f"| `{path}` | {_purpose(text)} |" for path, text in sources.items())

    def filled(text: str) -> str:
        return re.sub(r"@([A-Z]+)@", lambda field: fields[field[1]], text)

    fields["FILES"] = filled(fields["FILES"])
    written = []
    for path, file in templates.items():
        target = folder / filled(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text()
        target.write_text(filled(text) if file.name.endswith(".in") else text)
        written.append(target)
    return written
