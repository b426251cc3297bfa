"""Downloads of files, kept in the folder of the hub."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
import zipfile
from typing import Any
from urllib.parse import urlparse

import candelabra

from .folders import get_dir

#: The part of a file name with the first digits of the file's SHA256.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
READ_DATA_CHUNK = 128 * 1024


class _Progress:
    """Progress of a download on the standard error stream."""

    def __init__(self, total: int | None, shown: bool) -> None:
        self.total = total
        self.shown = shown
        self.done = 0

    def add(self, count: int) -> None:
        self.done += count
        if self.shown:
            part = f"{self.done} bytes" if not self.total else f"{100 * self.done / self.total:.1f}%"
            sys.stderr.write(f"\r{part}")
            sys.stderr.flush()

    def close(self) -> None:
        if self.shown:
            sys.stderr.write("\n")


def download_url_to_file(url: str, dst: Any, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Download a file.

    Parameters
    ----------
    url
        Where it is.
    dst
        Where it goes. An existing file is replaced once the download is complete.
    hash_prefix
        What the hexadecimal SHA256 of the file has to begin with.
    progress
        Whether the progress is shown on the standard error stream.

    Raises
    ------
    urllib.error.URLError
        If the file cannot be read.
    RuntimeError
        If it has another SHA256.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from candelabra import hub
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "source").write_text("text")
    >>> hub.download_url_to_file((folder / "source").as_uri(), folder / "target", progress=False)
    >>> (folder / "target").read_text()
    'text'
    """
    from urllib.request import Request, urlopen

    dst = os.path.expanduser(os.fspath(dst))
    # In the folder of the target, so that the finished file can be renamed.
    descriptor, partial = tempfile.mkstemp(
        prefix=f"{os.path.basename(dst)}.", suffix=".partial", dir=os.path.dirname(dst) or "."
    )
    try:
        digest = hashlib.sha256()
        with os.fdopen(descriptor, "wb") as file, urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as source:
            length = source.headers.get("Content-Length")
            bar = _Progress(None if length is None else int(length), progress)
            while chunk := source.read(READ_DATA_CHUNK):
                file.write(chunk)
                digest.update(chunk)
                bar.add(len(chunk))
            bar.close()
        if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
        # mkstemp() makes files that only the user can read.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(partial, 0o666 & ~mask)
        os.replace(partial, dst)
    finally:
        if os.path.exists(partial):
            os.unlink(partial)


def is_zipped_file(filename: str) -> bool:
    """Return whether a file is a zip archive of one file, as old checkpoints were zipped."""
    if not zipfile.is_zipfile(filename):
        return False
    with zipfile.ZipFile(filename) as archive:
        entries = archive.infolist()
    return len(entries) == 1 and not entries[0].is_dir()


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """Download a file, unless it was downloaded before, and load it.

    Parameters
    ----------
    url
        Where it is.
    model_dir
        The folder in which it is kept, by default ``checkpoints`` in `get_dir`.
    map_location, weights_only
        As in `candelabra.load`.
    progress
        Whether the progress is shown.
    check_hash
        Whether the file's name ends in the first digits of its SHA256 after a hyphen, which are
        compared with it.
    file_name
        The name under which it is kept, by default that in `url`.

    Returns
    -------
    dict
        What the file contains.
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else os.fspath(model_dir)
    os.makedirs(folder, exist_ok=True)
    name = os.path.basename(urlparse(url).path) if file_name is None else file_name
    kept = os.path.join(folder, name)
    if not os.path.exists(kept):
        sys.stdout.write(f'Downloading: "{url}" to {kept}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, kept, found.group(1) if found else None, progress)
    if is_zipped_file(kept):
        with zipfile.ZipFile(kept) as archive, tempfile.TemporaryDirectory() as unzipped:
            # extract() keeps the file in the folder, whatever its name says.
            kept = archive.extract(archive.infolist()[0], unzipped)
            return candelabra.load(kept, map_location=map_location, weights_only=weights_only)
    return candelabra.load(kept, map_location=map_location, weights_only=weights_only)
