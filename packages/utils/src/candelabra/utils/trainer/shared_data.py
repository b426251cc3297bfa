"""Position in an epoch that several ranks share: saved on some number of ranks, resumed on another.

The ranks take the samples of one order in turn (`DistributedSampler`) and are equally far in it.
So what they have taken is the start of that order, and the rest can be divided among other ranks.
"""

from __future__ import annotations

from typing import Any


def sharing_sampler(loader: Any) -> Any:
    """Return the sampler of a loader that divides an order among ranks, or None."""
    samplers = (getattr(loader, "sampler", None), getattr(getattr(loader, "batch_sampler", None), "sampler", None))
    return next((sampler for sampler in samplers if hasattr(sampler, "set_start")), None)


def share_state(loader: Any, batches: int) -> dict[str, Any] | None:
    """Return how far all ranks together are in their order, or None if the loader has no such
    sampler.

    Parameters
    ----------
    loader : iterable
        Of this rank.
    batches : int
        The number of batches that it has yielded.
    """
    sampler = sharing_sampler(loader)
    if sampler is None:
        return None
    size = _batch_size(loader)
    own = min(batches * size, sampler.num_samples)
    return {
        "ranks": sampler.num_replicas,
        "batch_size": size,
        "start": sampler.start,
        "taken": sampler.start + own * sampler.num_replicas,
        "order": _order(sampler),
    }


def _batch_size(loader: Any) -> int:
    for owner in (loader, getattr(loader, "batch_sampler", None)):
        size = getattr(owner, "batch_size", None)
        if size is not None:
            return int(size)
    return 1


def _order(sampler: Any) -> list[Any]:
    return [len(sampler.dataset), bool(sampler.shuffle), int(sampler.seed)]


def resume_share(loader: Any, saved: dict[str, Any] | None) -> bool:
    """Make a loader's sampler go on where the ranks of a saved state were.

    Parameters
    ----------
    loader : iterable
        Of this rank.
    saved : dict or None
        The result of `share_state`.

    Returns
    -------
    bool
        Whether the loader starts with the next sample. If not, it starts where the saved one did,
        and the batches that the latter has yielded must be skipped.

    Raises
    ------
    ValueError
        The order of this loader is another one.
    """
    sampler = sharing_sampler(loader)
    if (sampler is None) != (saved is None):
        raise ValueError(
            "the state was saved within an epoch, with a DistributedSampler in "
            + ("the loader then and none now" if sampler is None else "the loader now and none then")
            + ": their orders differ. DistributedSampler(dataset, num_replicas=1, rank=0) is the one for a single process"
        )
    if sampler is None or saved is None:
        return False
    if saved["order"] != _order(sampler):
        raise ValueError(
            "the state was saved within an epoch, and its DistributedSampler had another order: length, shuffle and seed "
            f"were {saved['order']}, and are {_order(sampler)}"
        )
    if saved["ranks"] == sampler.num_replicas and saved["batch_size"] == _batch_size(loader):
        sampler.set_start(saved["start"])
        return False
    sampler.set_start(min(saved["taken"], len(sampler.dataset)))
    return True
