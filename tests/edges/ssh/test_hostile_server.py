"""What answers in the place of an SSH server takes neither memory nor time from other hosts."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from clusterctl.edges.ssh.connection import connect
from clusterctl.fleet.errors import UnreachableError
from clusterctl.ports import Deadline, HostAddress

VERSION = b"SSH-2.0-OpenSSH_9.2\r\n"
ANSWERS = {
    "a line without end": (b"", b"x" * 4096, "more than 64 KiB"),
    "lines without end": (b"", b"Welcome\r\n" * 400, "more than 64 KiB|protocol version"),
    "a packet of 4 GiB": (VERSION + struct.pack(">IB", 0xFFFFFFFC, 4), bytes(4096), "a packet of more than 256 KiB"),
    "a packet of 1 MiB": (VERSION + struct.pack(">IB", (1 << 20) + 4, 4), bytes(4096), "a packet of more than 256 KiB"),
}
"""What a server sends first, what it sends then again and again, and why it is refused."""


@contextmanager
def serving(first: bytes, again: bytes) -> Iterator[int]:
    """Send the bytes to each client until it has gone; yield the port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client = listening.accept()[0]
                    with client, contextlib.suppress(OSError):
                        client.sendall(first)
                        while True:
                            client.sendall(again)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.generate()


@pytest.mark.parametrize("kind", ANSWERS)
def test_what_a_server_sends_is_bounded(tmp_path: Path, key: Ed25519PrivateKey, kind: str) -> None:
    """Each is an error of this host as soon as its limit is passed, not once its time is over."""
    first, again, words = ANSWERS[kind]
    mine = tmp_path / "key"
    mine.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    pinned = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    with serving(first, again) as port:
        host = HostAddress(name="n1", address="127.0.0.1", port=port, user="ops", key_file=str(mine), host_key=pinned)
        with pytest.raises(UnreachableError, match=words):
            connect(host, Deadline.after(600))
