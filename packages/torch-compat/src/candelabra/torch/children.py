"""Installation of the import hook in child processes.

A forked child inherits the hook. A spawned child, or one of the fork server, imports the main
module again, so the hook has to be installed before that.
"""

from __future__ import annotations

import multiprocessing.forkserver
import multiprocessing.spawn
from typing import Any

_FIRST = "import candelabra.torch; candelabra.torch.install(); "
_plain_command_line = multiprocessing.spawn.get_command_line


def _command_line(**options: Any) -> list[str]:
    """Return the command of a spawned child, which installs the hook first."""
    command = _plain_command_line(**options)
    if "-c" in command:
        program = command.index("-c") + 1
        command[program] = _FIRST + command[program]
    return command


def start_installed() -> None:
    """Install the hook in children that are started from now on."""
    multiprocessing.spawn.get_command_line = _command_line
    # Do not preload the main module in the fork server: it would be imported before the hook.
    multiprocessing.forkserver.set_forkserver_preload(["candelabra.torch.installed"])


def start_plain() -> None:
    """Undo `start_installed`."""
    multiprocessing.spawn.get_command_line = _plain_command_line
    multiprocessing.forkserver.set_forkserver_preload(["__main__"])
