"""The frames that stores and servers exchange: a code and a list of byte strings.

A connection starts with a nonce of the server. The client answers with a frame ``HELLO`` that has
the kind of the connection and the HMAC of nonce and kind under the job's token.
"""

from __future__ import annotations

import hmac
import os
import struct

#: What a server sends first, before the nonce.
MAGIC = b"candelabra-store-1\n"
NONCE_BYTES = 16
#: Longer frames are refused before anything is allocated.
MAX_FRAME = 1 << 30
#: The longest frame that is read of a client that has not shown that it knows the token.
MAX_HELLO = 1 << 16

# Requests of stores.
HELLO = 0
SET = 1
GET = 2
WAIT = 3
CHECK = 4
ADD = 5
DELETE = 6
COMPARE_SET = 7
NUM_KEYS = 8
LIST_KEYS = 9
MULTI_SET = 10
APPEND = 11
QUEUE_PUSH = 12
QUEUE_POP = 13
QUEUE_TAKE = 14
QUEUE_LEN = 15
# Messages about the ranks' health.
BEAT = 32
BYE = 33
STATES = 34
FAILED = 35
LEFT = 36
DEATH = 37
JOINED = 38

# Replies.
OK = 64
TIMED_OUT = 65
REFUSED = 66
JOB_FAILED = 67

_HEAD = struct.Struct("!IBI")
_LENGTH = struct.Struct("!I")


def frame(code: int, parts: list[bytes]) -> bytes:
    """Return a frame as bytes."""
    body = b"".join(_LENGTH.pack(len(part)) + part for part in parts)
    return _HEAD.pack(len(body), code, len(parts)) + body


def take_frame(buffer: bytearray, largest: int = MAX_FRAME) -> tuple[int, list[bytes]] | None:
    """Remove the first frame from a buffer and return its code and parts, or None if it is not
    complete.

    Parameters
    ----------
    buffer : bytearray
        The bytes that have arrived.
    largest : int, optional
        The longest frame to wait for, in bytes.

    Raises
    ------
    ValueError
        The bytes are no frame.
    """
    if len(buffer) < _HEAD.size:
        return None
    length, code, count = _HEAD.unpack_from(buffer)
    if length > largest or count * _LENGTH.size > length:
        raise ValueError("the bytes are no frame of a store")
    end = _HEAD.size + length
    if len(buffer) < end:
        return None
    parts = []
    position = _HEAD.size
    for _ in range(count):
        if position + _LENGTH.size > end:
            raise ValueError("the bytes are no frame of a store")
        (size,) = _LENGTH.unpack_from(buffer, position)
        position += _LENGTH.size
        if position + size > end:
            raise ValueError("the bytes are no frame of a store")
        parts.append(bytes(buffer[position : position + size]))
        position += size
    del buffer[:end]
    return code, parts


def proof(token: str, nonce: bytes, kind: str) -> bytes:
    """Return what a client must send in order to show that it knows the job's token."""
    return hmac.digest(token.encode(), nonce + kind.encode(), "sha256")


def job_token() -> str:
    """Return the token of this process's job: the launcher passes it on in the environment.

    Without it, the job's number under a batch system is the token, or nothing.
    """
    for name in ("CANDELABRA_JOB_TOKEN", "SLURM_JOB_ID", "PMI_JOBID", "PBS_JOBID"):
        if value := os.environ.get(name):
            return value
    return ""
