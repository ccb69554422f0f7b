"""What answers in the place of an SSH server takes neither memory nor time from other hosts."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from clusterctl.edges.ssh.connection import BoundedPacketizer, connect
from clusterctl.fleet.errors import NoSshError, SshFailure, UnreachableError
from clusterctl.ports import Deadline, HostAddress

HUGE = struct.pack(">IB", 0xFFFFFFFC, 4)


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


def a_host(folder: Path, port: int) -> HostAddress:
    key = Ed25519PrivateKey.generate()
    mine = folder / "key"
    mine.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    pinned = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return HostAddress(name="n1", address="127.0.0.1", port=port, user="ops", key_file=str(mine), host_key=pinned)


@pytest.mark.parametrize("again", [b"x" * 4096, b"\xff"])
def test_a_first_line_without_end_is_refused(again: bytes) -> None:
    """As soon as its limit is passed, not once its time is over."""
    with (
        serving(b"", again) as port,
        socket.create_connection(("127.0.0.1", port)) as sock,
        pytest.raises(paramiko.SSHException, match="more than 64 KiB"),
    ):
        BoundedPacketizer(sock).readline(3600)


@pytest.mark.parametrize("size", [(1 << 18) + 1, 0xFFFFFFFC])
def test_a_packet_larger_than_any_is_refused_before_it_is_read(size: int) -> None:
    with serving(b"", bytes(4096)) as port, socket.create_connection(("127.0.0.1", port)) as sock:
        packets = BoundedPacketizer(sock)
        with pytest.raises(paramiko.SSHException, match="a packet of more than 256 KiB"):
            packets.read_all(size)
        assert packets.read_all(1 << 18) == bytes(1 << 18)


@pytest.mark.parametrize("first", [b"", b"SSH-2.0-OpenSSH_9.2\r\n" + HUGE])
def test_such_a_server_is_a_host_that_cannot_be_reached(tmp_path: Path, first: bytes) -> None:
    with serving(first, b"x" * 4096) as port, pytest.raises(UnreachableError):
        connect(a_host(tmp_path, port), Deadline.after(600))


def test_a_server_that_only_greets_is_given_up_in_time_without_a_thread_for_each_limit(tmp_path: Path) -> None:
    """Fleets open hundreds of connections: the wait for the keys has the time limit, and needs no timer thread."""
    host = a_host(tmp_path, 0)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host = replace(host, port=listening.getsockname()[1])
        failed: list[tuple[SshFailure, str]] = []

        def attempt() -> None:
            with pytest.raises(NoSshError) as error:
                connect(host, Deadline.after(2))
            failed.append((error.value.failure, error.value.message))

        trying = threading.Thread(target=attempt)
        trying.start()
        client = listening.accept()[0]
        with client:
            client.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            while b"curve25519" not in client.recv(4096):
                pass
            timers = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
            trying.join(20)
    assert failed == [(SshFailure.NO_GREETING, "no SSH: sshd does not answer in time: key exchange")]
    assert not timers


def test_a_server_that_ends_before_its_greeting_is_a_broken_connection(tmp_path: Path) -> None:
    """As sshd does while it starts, or past its MaxStartups: the host does not hang."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host = a_host(tmp_path, listening.getsockname()[1])

        def serve_nothing() -> None:
            listening.accept()[0].close()

        threading.Thread(target=serve_nothing, daemon=True).start()
        with pytest.raises(NoSshError) as error:
            connect(host, Deadline.after(600))
    assert error.value.failure is SshFailure.BROKEN


def test_a_kernel_that_takes_the_connection_for_a_silent_server_is_a_host_that_hangs(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, pytest.raises(NoSshError) as error:
        connect(a_host(tmp_path, listening.getsockname()[1]), Deadline.after(1))
    assert error.value.failure is SshFailure.NO_GREETING


def test_a_port_without_a_server_refuses(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host = a_host(tmp_path, listening.getsockname()[1])
    with pytest.raises(NoSshError) as error:
        connect(host, Deadline.after(600))
    assert error.value.failure is SshFailure.REFUSED
