"""The messages between a run and its installer service: JSON behind its length, over a pair of Unix sockets.

The run sends a `Setup` first, then pings and replies. The service sends calls and pongs. The service's side trusts the
run; the run's side (`exchange`) believes nothing that the service sends.
"""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

MAX_BYTES = 12 << 20
"""Of one message: the largest post of a machine, 8 MiB, is a third longer as base64."""
LENGTH = struct.Struct(">I")
PING, PONG = "ping", "pong"
POST_BYTES = {
    "report": 256 << 10,
    "progress": 4 << 10,
    "host-key": 4 << 10,
    "failed": 4 << 10,
    "done": 4 << 10,
    "webhook": 64 << 10,
    "log": 8 << 20,
}
"""The names that a machine may post to, and the largest body of each."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The first message of the run.

    base               the URL by which machines reach the service
    boot_folder        the folder that is served below `/files/`
    probe              the text of probe.sh
    downloads_at_once  images that are sent at a time
    certificate        PEM, with its chain; empty: plain HTTP
    private_key        its key
    user, group        numbers of the service's own account; None: it stays what it is, and its view of the disk too
    """

    base: str
    boot_folder: str
    probe: str
    downloads_at_once: int = 16
    user: int | None = None
    group: int | None = None
    certificate: str = ""
    private_key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A question of the service: what one request of a machine needs of the run.

    kind   boot, start, efi, image, probe, document, may_post or post
    token  the attempt's; with `start` and `efi` its ticket
    name   of a document, or of what is posted; with `efi` the method of HTTP
    body   what is posted
    host   the address that the request came from
    """

    kind: str
    token: str = ""
    mac: str = ""
    serial: str = ""
    name: str = ""
    body: bytes = b""
    host: str = ""


@dataclass(frozen=True, slots=True)
class ChannelReply:
    """The answer to a request, as HTTP has it."""

    status: int
    content: bytes = b""


OK = ChannelReply(200, b"ok\n")
NOT_FOUND = ChannelReply(404, b"not found\n")
NOT_NOW = ChannelReply(503, b"not now\n")
"""The controller has a problem of its own: the machine tries again and sees no details."""


def text(status: int, words: str) -> ChannelReply:
    """Return a reply of text."""
    return ChannelReply(status, words.encode())


def frame(message: Mapping[str, Any]) -> bytes:
    """Return the message behind its length. Raises `ValueError` where it is too long."""
    content = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode()
    if len(content) > MAX_BYTES:
        raise ValueError(f"a message of {len(content)} bytes")
    return LENGTH.pack(len(content)) + content


def call_frame(number: int, call: Call) -> bytes:
    """Return the frame of a call."""
    return frame({**asdict(call), "id": number, "body": b64encode(call.body).decode()})


def reply_frame(number: int, reply: ChannelReply) -> bytes:
    """Return the frame of a reply to the call of this number; of `NOT_NOW` where it is too long."""
    try:
        return frame({"id": number, "status": reply.status, "content": b64encode(reply.content).decode()})
    except ValueError:
        return reply_frame(number, NOT_NOW)


def reply_of(message: Mapping[str, Any]) -> ChannelReply:
    """Return the reply in a message of the run."""
    return ChannelReply(message["status"], b64decode(message["content"]))
