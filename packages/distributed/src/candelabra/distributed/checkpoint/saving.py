"""Saving: each rank writes a file, and rank 0 completes the checkpoint by its index."""

from __future__ import annotations

import concurrent.futures
import hashlib
import heapq
import json
import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

from candelabra import _C, Tensor

from ..process_group import ProcessGroup
from . import default_planner, index
from .committee import Committee, committee
from .errors import CheckpointException
from .filesystem import FileSystemReader, FileSystemWriter, chosen
from .flattening import flatten
from .metadata import Metadata
from .rank_files import Part, encoded, write_rank_file
from .sharded import Sharded
from .stateful import Stateful

#: Files of earlier checkpoints, and what a killed process has left.
_OWN_FILES = re.compile(rf"{index.FILE.pattern}(\.[0-9a-f]{{8}}\.part)?|index\.json\.[0-9a-f]{{8}}\.part")
_threads: concurrent.futures.ThreadPoolExecutor | None = None


def save(
    state_dict: Mapping[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: default_planner.DefaultSavePlanner | None = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Save a state as a checkpoint, which replaces that in the folder once it is complete.

    All ranks must call it. Each writes its parts of sharded tensors; tensors that are not sharded
    are equal on all ranks, which share out the work of writing them. Other values, which must be
    plain data, are those of rank 0. Ranks with other names than rank 0's save all that they have.

    Parameters
    ----------
    state_dict : mapping
        Tensors, plain data and objects with ``state_dict()``, nested in dicts and lists.
    checkpoint_id : str or path, optional
        The folder, on a file system that all ranks share.
    storage_writer : FileSystemWriter, optional
        Instead of `checkpoint_id`.
    planner : DefaultSavePlanner, optional
        For compatibility with PyTorch.
    process_group : ProcessGroup, optional
        The ranks that save; the world by default.
    no_dist : bool
        This process saves by itself.
    use_collectives : bool
        Has no effect: no collective is called.

    Returns
    -------
    Metadata
        What the checkpoint holds.

    Raises
    ------
    CheckpointException
        A rank could not write. The folder holds the earlier checkpoint.
    DistBackendError
        A rank has failed.

    Examples
    --------
    >>> import candelabra, tempfile
    >>> import candelabra.distributed.checkpoint as dcp
    >>> folder = tempfile.mkdtemp()
    >>> _ = dcp.save({"weight": candelabra.ones(2), "step": 7}, checkpoint_id=folder)
    >>> state = {"weight": candelabra.zeros(2), "step": 0}
    >>> dcp.load(state, checkpoint_id=folder)
    >>> state
    {'weight': tensor([1., 1.]), 'step': 7}
    """
    default_planner.checked(planner, default_planner.DefaultSavePlanner, "save()")
    writer = chosen(storage_writer, checkpoint_id, FileSystemWriter, "save()")
    ranks = committee(process_group, no_dist)
    if ranks is not None:
        _Saving(writer, ranks, state_dict, is_staged=False).finish()
    return FileSystemReader(writer.path).read_metadata()


def async_save(
    state_dict: Mapping[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: default_planner.DefaultSavePlanner | None = None,
    process_group: ProcessGroup | None = None,
    async_checkpointer_type: Any = None,
    async_stager: None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> concurrent.futures.Future[Metadata]:
    """Copy a state and save it in a thread, while training goes on.

    Checkpoints of one process are written one after another.

    Parameters
    ----------
    state_dict, checkpoint_id, storage_writer, planner, process_group, no_dist, use_collectives
        As for `save`.
    async_checkpointer_type
        Has no effect: it is a thread, which calls no collective.
    async_stager
        Must be None: this rank's parts are copied to host memory.

    Returns
    -------
    concurrent.futures.Future
        Of what `save` returns; its `result` raises what `save` raises.

    Examples
    --------
    >>> import candelabra, tempfile
    >>> import candelabra.distributed.checkpoint as dcp
    >>> folder = tempfile.mkdtemp()
    >>> saved = dcp.async_save({"weight": candelabra.ones(2)}, checkpoint_id=folder)
    >>> sorted(saved.result().state_dict_metadata)
    ['weight']
    """
    default_planner.checked(planner, default_planner.DefaultSavePlanner, "async_save()")
    if async_stager is not None:
        raise TypeError("async_save(): stagers are not supported; the parts of a rank are copied to host memory")
    writer = chosen(storage_writer, checkpoint_id, FileSystemWriter, "async_save()")
    metadata = FileSystemReader(writer.path).read_metadata()
    ranks = committee(process_group, no_dist)
    if ranks is None:
        done: concurrent.futures.Future[Metadata] = concurrent.futures.Future()
        done.set_result(metadata)
        return done
    saving = _Saving(writer, ranks, state_dict, is_staged=True)

    def write() -> Metadata:
        saving.finish()
        return metadata

    global _threads
    if _threads is None:
        _threads = concurrent.futures.ThreadPoolExecutor(1, "candelabra-checkpoint")
    return _threads.submit(write)


class _Saving:
    """One checkpoint that is saved: this rank's part in it."""

    def __init__(self, writer: FileSystemWriter, ranks: Committee, state: Mapping[str, Any], is_staged: bool) -> None:
        self._folder = writer.path
        self._is_synced = writer.sync_files
        self._ranks = ranks
        self._parts: list[Part] = []
        self._objects: dict[str, Any] = {}
        ranks.open()
        try:
            self._name = self._prepare(writer, state, is_staged)
        except BaseException:
            ranks.close()
            raise

    def _prepare(self, writer: FileSystemWriter, state: Mapping[str, Any], is_staged: bool) -> str:
        """Choose what this rank saves; return the name of its file."""
        problem: Exception | None = None
        plain: dict[str, Tensor] = {}
        digest = ""
        try:
            if not writer.overwrite and writer.has_checkpoint():
                raise CheckpointException(f"save(): {writer.path} holds a checkpoint, and overwrite is False")
            plain, digest = self._sort(state)
        except Exception as error:  # told to all ranks
            problem = error
        reports = self._ranks.report("begin", {"names": digest, "error": _told(problem)})
        verdict = self._ranks.decide("begin", _begin(reports)) if reports else self._ranks.decide("begin", None)
        self._raise(verdict, problem)
        if verdict["is_replicated"] and self._ranks.size > 1:
            owners = _owners(plain, self._ranks.size)
            plain = {name: tensor for name, tensor in plain.items() if owners[name] == self._ranks.rank}
            if self._ranks.rank:
                self._objects = {}
        self._parts += [Part(name, t.shape, [0] * t.dim(), t) for name, t in plain.items()]
        if is_staged:
            self._parts = [
                Part(part.name, part.shape, part.offsets, part.tensor.to("cpu", copy=True)) for part in self._parts
            ]
        return f"rank-{self._ranks.rank:05d}-{verdict['identity']}.safetensors"

    def _sort(self, state: Mapping[str, Any]) -> tuple[dict[str, Tensor], str]:
        """Take the parts and the values; return the tensors that are not sharded, and a digest
        of names.
        """
        states = {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state.items()}
        plain: dict[str, Tensor] = {}
        for name, value in flatten(states).items():
            if isinstance(value, Sharded):
                shards = value.__sharded__()
                if shards.is_saved_here:
                    self._parts += [
                        Part(name, shards.shape, offsets, tensor)
                        for offsets, tensor in shards.pieces
                        if tensor.numel() or not prod(shards.shape)
                    ]
            elif isinstance(value, Tensor):
                plain[name] = value.detach()
            else:
                try:
                    self._objects[name] = encoded(value)
                except TypeError as error:
                    raise TypeError(f"save(): {name!r} is no plain data: {error}") from None
        described = [[name, list(t.shape), t.dtype.name] for name, t in plain.items()] + sorted(self._objects)
        return plain, hashlib.sha256(json.dumps(described).encode()).hexdigest()

    def finish(self) -> None:
        """Write this rank's file, and complete the checkpoint."""
        try:
            self._write()
        finally:
            self._ranks.close()

    def _write(self) -> None:
        path = self._folder / self._name
        problem: Exception | None = None
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_rank_file(path, self._parts, self._objects, self._is_synced)
        except Exception as error:  # told to all ranks
            problem = error
        reports = self._ranks.report("written", {"file": self._name, "error": _told(problem)})
        verdict = None
        if reports:
            verdict = _failures(reports)
            if not verdict["errors"]:
                try:
                    _complete(self._folder, [report["file"] for report in reports])
                except Exception as error:  # told to all ranks
                    problem, verdict = error, {"errors": {"0": _told(error)}}
        verdict = self._ranks.decide("written", verdict)
        if verdict["errors"]:
            with suppress(OSError):  # what remains, the next checkpoint removes
                path.unlink(missing_ok=True)
        self._raise(verdict, problem)

    def _raise(self, verdict: dict[str, Any], problem: Exception | None) -> None:
        if not verdict["errors"]:
            return
        if self._ranks.size == 1 and problem is not None:
            raise problem
        failures = {int(rank): text for rank, text in verdict["errors"].items()}
        raise CheckpointException(f"save(): no checkpoint was saved to {self._folder}", failures) from problem


def _told(error: Exception | None) -> str | None:
    return None if error is None else f"{type(error).__name__}: {error}"


def _failures(reports: list[dict[str, Any]]) -> dict[str, Any]:
    return {"errors": {str(rank): report["error"] for rank, report in enumerate(reports) if report["error"]}}


def _begin(reports: list[dict[str, Any]]) -> dict[str, Any]:
    is_replicated = all(report["names"] == reports[0]["names"] for report in reports)
    return {**_failures(reports), "is_replicated": is_replicated, "identity": secrets.token_hex(4)}


def _owners(tensors: Mapping[str, Tensor], size: int) -> dict[str, int]:
    """Return the rank that writes each tensor, so that all write about as many bytes."""
    loads = [(0, rank) for rank in range(size)]
    owners = {}
    for name in sorted(tensors, key=lambda name: (-tensors[name].numel() * tensors[name].dtype.itemsize, name)):
        load, rank = loads[0]
        owners[name] = rank
        heapq.heapreplace(loads, (load + tensors[name].numel() * tensors[name].dtype.itemsize + 1, rank))
    return owners


def _complete(folder: Path, names: list[str]) -> None:
    """Write the index, and remove what belongs to no checkpoint any more."""
    index.write_index(folder, index.merged(folder, names))
    for path in folder.iterdir():
        if _OWN_FILES.fullmatch(path.name) and path.name not in names:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                _C.warn(f"save(): {path} of an earlier checkpoint could not be removed: {error}")
