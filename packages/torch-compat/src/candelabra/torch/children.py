"""Processes that are started from a program in which torch is Candelabra: in them it is, too.

A forked child has the hook in its memory. One that is spawned, or forked by the fork server,
imports the program anew, so the hook has to be there before.
"""

from __future__ import annotations

import multiprocessing.forkserver
import multiprocessing.spawn
from typing import Any

_FIRST = "import candelabra.torch; candelabra.torch.install(); "
_plain_command_line = multiprocessing.spawn.get_command_line


def _command_line(**options: Any) -> list[str]:
    """The command that starts a spawned child, with the hook before anything else."""
    command = _plain_command_line(**options)
    if "-c" in command:
        program = command.index("-c") + 1
        command[program] = _FIRST + command[program]
    return command


def start_installed() -> None:
    """Let children that are started from now on have the hook."""
    multiprocessing.spawn.get_command_line = _command_line
    # The main module is not imported into the server: there, the hook would come after it.
    multiprocessing.forkserver.set_forkserver_preload(["candelabra.torch.installed"])


def start_plain() -> None:
    """Undo `start_installed`."""
    multiprocessing.spawn.get_command_line = _plain_command_line
    multiprocessing.forkserver.set_forkserver_preload(["__main__"])
