"""The launcher: starts the processes of a job and watches them.

``python -m candelabra.distributed.run --nproc-per-node 4 train.py`` or ``torchrun``, with
torchrun's arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the launcher, and return its exit status: 0, or 1 if a process has failed.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line by default.
    """
    from .agent import Agent
    from .arguments import read_arguments

    return Agent(read_arguments(arguments)).run()
