"""Models from a folder that says in ``hubconf.py`` how they are made, and downloaded state dicts,
as ``torch.hub`` has them. Code is never downloaded.
"""

from __future__ import annotations

import importlib.util
import os
import sys

from .downloading import HASH_REGEX, READ_DATA_CHUNK, download_url_to_file, load_state_dict_from_url
from .folders import DEFAULT_CACHE_DIR, ENV_TORCH_HOME, ENV_XDG_CACHE_HOME, get_dir, set_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

__all__ = [
    "DEFAULT_CACHE_DIR", "ENV_TORCH_HOME", "ENV_XDG_CACHE_HOME", "HASH_REGEX", "MODULE_HUBCONF", "READ_DATA_CHUNK", "VAR_DEPENDENCY",
    "download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir",
]  # fmt: skip

MODULE_HUBCONF = "hubconf.py"
VAR_DEPENDENCY = "dependencies"


def _kept(function: str, repository: str) -> str:
    """Return the folder of a GitHub repository that PyTorch has downloaded to `get_dir` before."""
    name, _, branch = repository.partition(":")
    for reference in [branch] if branch else ["main", "master"]:
        folder = os.path.join(get_dir(), f"{name}/{reference}".replace("/", "_"))
        if os.path.isdir(folder):
            return folder
    raise RuntimeError(
        f"candelabra.hub.{function}(): {repository!r} would be downloaded and run; download what you trust yourself, "
        "and give the folder with source='local'"
    )


def _entries(function: str, repo_or_dir: Any, source: str) -> ModuleType:
    """Run the ``hubconf.py`` of a folder, with the folder on the path while it is imported."""
    if source == "github":
        repo_or_dir = _kept(function, repo_or_dir)
        source = "local"
    if source != "local":
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = os.path.abspath(os.fspath(repo_or_dir))
    path = os.path.join(folder, MODULE_HUBCONF)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"candelabra.hub.{function}(): there is no {MODULE_HUBCONF} in {folder}")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    missing = [name for name in getattr(module, VAR_DEPENDENCY, None) or () if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: ModuleType, name: str) -> Callable[..., Any]:
    found = getattr(module, name, None) if isinstance(name, str) else None
    if found is None or not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found  # type: ignore[no-any-return]


def list(
    github: Any, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None, verbose: bool = True,
    *, source: str = "local",
) -> Any:  # fmt: skip
    """Return the names of the models that a folder has: what its ``hubconf.py`` can call and whose
    name does not begin with ``_``.

    Parameters
    ----------
    github : str or path
        The folder.
    source : str
        ``"local"``; of ``"github"``, only repositories that are in `get_dir` already.
    force_reload, skip_validation, trust_repo, verbose
        Of downloads, and without effect.

    Raises
    ------
    FileNotFoundError
        If there is no ``hubconf.py`` in it.
    RuntimeError
        If something would be downloaded, or packages are missing that the folder names in
        ``dependencies``.

    Examples
    --------
    >>> import candelabra, pathlib, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = pathlib.Path(folder, "hubconf.py").write_text("def net(size=2):\\n    'Zeros.'\\n    return [0] * size")
    >>> candelabra.hub.list(folder)
    ['net']
    """
    module = _entries("list", github, source)
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(
    github: Any, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None,
    *, source: str = "local",
) -> str | None:  # fmt: skip
    """Return the docstring of a model of a folder; arguments and errors are those of `list`.

    Examples
    --------
    >>> import candelabra, pathlib, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = pathlib.Path(folder, "hubconf.py").write_text("def net(size=2):\\n    'Zeros.'\\n    return [0] * size")
    >>> candelabra.hub.help(folder, "net")
    'Zeros.'
    """
    return _entry(_entries("help", github, source), model).__doc__


def load(
    repo_or_dir: Any, model: str, *args: Any, source: str = "github", trust_repo: Any = None, force_reload: bool = False,
    verbose: bool = True, skip_validation: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Return what a model's function in a folder's ``hubconf.py`` makes of the arguments. The
    folder's code is run: trust it.

    Parameters
    ----------
    repo_or_dir : str or path
        The folder.
    model : str
        The name of the function.
    *args, **kwargs
        What it is called with.
    source : str
        ``"local"``. The default is that of PyTorch; only repositories that are in `get_dir` already
        can be loaded so.
    trust_repo, force_reload, verbose, skip_validation
        Of downloads, and without effect.

    Raises
    ------
    FileNotFoundError
        If there is no ``hubconf.py`` in the folder.
    RuntimeError
        If something would be downloaded, if there is no such function, or packages are missing that
        the folder names.

    Examples
    --------
    >>> import candelabra, pathlib, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = pathlib.Path(folder, "hubconf.py").write_text("def net(size=2):\\n    'Zeros.'\\n    return [0] * size")
    >>> candelabra.hub.load(folder, "net", size=3, source="local")
    [0, 0, 0]
    """
    return _entry(_entries("load", repo_or_dir, source), model)(*args, **kwargs)
