"""What a job's server knows about the ranks, and how it tells them about a failure."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from . import wire
from .addresses import process_space

if TYPE_CHECKING:
    from .server import Peer, StoreServer

#: Seconds for which the server waits for the launcher to say how a process has ended.
_CAUSE = 0.25
#: Seconds after which a stopped process counts as failed.
STOPPED = 4.0


class Activity:
    """A rank's current or last collective.

    Parameters
    ----------
    is_inside : bool
        Whether the rank is in it.
    group : int
        The number of its process group; -1 if there was none.
    number : int
        The number of the collective in its group.
    text : str
        The collective with its number.
    """

    def __init__(self, is_inside: bool = False, group: int = -1, number: int = 0, text: str = "") -> None:
        self.is_inside = is_inside
        self.group = group
        self.number = number
        self.text = text

    def phrase(self) -> str:
        """Return the end of a message about the rank."""
        if not self.text:
            return ""
        return f"; it was in {self.text}" if self.is_inside else f"; its last collective was {self.text}"


class Member:
    """A rank that has joined."""

    def __init__(self, rank: int, details: dict[str, Any], peer: Peer) -> None:
        self.rank = rank
        self.process: int = details["process"]
        self.host: str = details["host"]
        #: The launcher watches the process and will say how it has ended.
        self.is_watched: bool = details["is_watched"]
        self.is_local: bool = details["space"] == process_space()
        self.peer = peer
        #: Its current or last collective.
        self.activity = Activity()
        #: When its connection has ended without a good-bye.
        self.lost_at: float | None = None
        self.stopped_since: float | None = None

    def named(self) -> str:
        """Return the words by which messages name the rank."""
        where = "" if self.is_local else f" on {self.host}"
        return f"rank {self.rank} (process {self.process}{where})"


class World:
    """The ranks that started together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.members: dict[int, Member] = {}
        self.left: dict[int, str] = {}
        self.failure: str | None = None


class HealthBoard:
    """The ranks of all worlds: what they do, and which one has failed first."""

    def __init__(self, server: StoreServer) -> None:
        self._server = server
        self._worlds: dict[str, World] = {}
        #: The connections of the launchers of other machines, with their numbers as states.
        self._agents: list[Peer] = []

    def greet(self, peer: Peer, kind: str, details: list[bytes]) -> None:
        """Take the connection of a rank or of a launcher."""
        if kind == "agent":
            peer.state = int(details[0]) if details else -1
            self._agents.append(peer)
            return
        given = json.loads(details[0])
        world = self._world(given["world"])
        member = Member(given["rank"], given, peer)
        peer.state = (world, member)
        if world.left.pop(member.rank, None) is not None:
            self._tell(world, wire.JOINED, [str(member.rank).encode()])
        world.members[member.rank] = member
        self._server.send(peer, wire.OK, [])
        if world.failure is not None:
            self._server.send(peer, wire.FAILED, [world.failure.encode()])

    def _world(self, name: str) -> World:
        if name not in self._worlds:
            self._worlds[name] = World(name)
        return self._worlds[name]

    def receive(self, peer: Peer, code: int, parts: list[bytes]) -> None:
        """Take a message of a rank or a launcher."""
        if peer.kind == "agent":
            if code == wire.DEATH:
                world, rank, process, how, activity = (part.decode() for part in parts)
                self._report(world, int(rank), int(process), how, json.loads(activity))
            return
        world, member = peer.state
        if code == wire.BEAT:
            member.activity = Activity(*json.loads(parts[0]))
        elif code == wire.BYE:
            world.members.pop(member.rank, None)
            world.left[member.rank] = member.named()
            self._tell(world, wire.LEFT, [str(member.rank).encode(), member.named().encode()])
            self._server.send(peer, wire.OK, [])
        elif code == wire.STATES:
            self._server.send(peer, wire.STATES, [json.dumps(self._states(world)).encode()])

    def _states(self, world: World) -> dict[str, Any]:
        return {
            "activities": {
                str(rank): [member.named(), *vars(member.activity).values()] for rank, member in world.members.items()
            },
            "left": {str(rank): named for rank, named in world.left.items()},
        }

    def lost(self, peer: Peer) -> None:
        """Note that a connection has ended."""
        if peer.kind == "agent":
            self._agents.remove(peer)
            return
        world, member = peer.state
        if world.members.get(member.rank) is not member:
            return
        member.lost_at = time.monotonic()
        if not member.is_watched:
            self._fail(world, f"{member.named()} has ended, or was killed{member.activity.phrase()}")

    def settle(self, now: float) -> None:
        """Report the ranks whose connections have ended without a word of their launcher."""
        for world in self._worlds.values():
            if world.failure is not None:
                continue
            for member in list(world.members.values()):
                if member.lost_at is not None and now - member.lost_at > _CAUSE:
                    self._fail(world, f"{member.named()} has ended, or was killed{member.activity.phrase()}")
                    break

    def look(self, now: float) -> None:
        """Report the ranks that are stopped."""
        self.settle(now)
        for world in self._worlds.values():
            for member in list(world.members.values()):
                if not member.is_local or not is_stopped(member.process):
                    member.stopped_since = None
                elif member.stopped_since is None:
                    member.stopped_since = now
                elif now - member.stopped_since >= STOPPED and world.failure is None:
                    self._fail(world, f"{member.named()} {stopped_text()}{member.activity.phrase()}")

    def failure(self, world: str) -> str | None:
        """Return what has failed first in a world, or None; for the launcher in the server's
        process.
        """
        found = self._worlds.get(world)
        return None if found is None else found.failure

    def machines(self) -> set[int]:
        """Return the numbers of the other machines whose launchers are connected; for the launcher
        in the server's process.
        """
        return {peer.state for peer in list(self._agents)}

    def report_death(self, world: str, rank: int, process: int, how: str, activity: list[Any] | None) -> None:
        """Say how a process has ended and what it did; for the launcher in the server's process."""
        self._server.call(lambda: self._report(world, rank, process, how, activity))

    def _report(self, name: str, rank: int, process: int, how: str, activity: list[Any] | None) -> None:
        world = self._world(name)
        if world.failure is not None:
            return
        member = world.members.get(rank)
        if member is not None:
            if activity is not None:
                member.activity = Activity(*activity)
            self._fail(world, f"{member.named()} {how}{member.activity.phrase()}")
        elif rank not in world.left:
            self._fail(world, f"rank {rank} (process {process}) {how}, before it joined the process group")
        else:
            self._fail(world, f"rank {rank} (process {process}) {how}")

    def _fail(self, world: World, message: str) -> None:
        if world.failure is not None:
            return
        world.failure = message
        self._tell(world, wire.FAILED, [message.encode()])
        self._server.fail_waiters(world.name, message)

    def _tell(self, world: World, code: int, parts: list[bytes]) -> None:
        for member in world.members.values():
            if member.lost_at is None:
                self._server.send(member.peer, code, parts)


def stopped_text() -> str:
    """Return the words for a process that is stopped."""
    return f"was stopped and has not gone on for {STOPPED:g} s"


def is_stopped(process: int) -> bool:
    """Return whether a process of this machine is stopped by a signal."""
    with suppress(OSError, IndexError), open(f"/proc/{process}/stat", "rb") as file:
        return file.read(1024).rpartition(b")")[2].split()[0] == b"T"
    return False
