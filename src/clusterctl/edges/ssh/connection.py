"""An SSH connection to the host that holds the pinned key, and to no other; each error is one of ours."""

from __future__ import annotations

import base64
import contextlib
import functools
import socket
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import paramiko
from paramiko.packet import Packetizer
from paramiko.pkey import UnknownKeyType
from paramiko.ssh_exception import IncompatiblePeer

from clusterctl.fleet.errors import (
    AuthenticationError,
    EnvironmentBrokenError,
    NoSshError,
    SshFailure,
    UntrustedError,
    UsageError,
)
from clusterctl.formats.host.ssh import STALLED
from clusterctl.ports import Deadline, HostAddress

CONNECT_SECONDS = 15.0
_KEX = "curve25519-sha256@libssh.org"  # 9 ms of CPU a connection, where OpenSSH's default takes 55
_CIPHER = "aes128-gcm@openssh.com"  # authenticates in C, where paramiko compares a MAC byte by byte in Python
_RSA_SIGNATURES = ("rsa-sha2-512", "rsa-sha2-256")
_IDLE_LOOK_SECONDS = 60.0  # paramiko's own is 0.1: ten times a second for each connection of a fleet


class TooSlowError(paramiko.SSHException):
    """The server took the connection and did not answer in time. `stage`: what it was to answer."""

    def __init__(self, stage: str) -> None:
        super().__init__(f"{STALLED}: {stage}")


_GREETING_BYTES = 1 << 16
_PACKET_BYTES = 1 << 18  # OpenSSH's own limit (PACKET_MAX_SIZE)


class BoundedPacketizer(Packetizer):
    """Refuses what paramiko would keep: lines without end before the server's version, and packets of up to 4 GiB."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._greeting = 0

    def start_handshake(self, timeout: float) -> None:
        """Start no thread for the time limit: `_negotiate` waits no longer than its own."""

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:
        if n > _PACKET_BYTES:
            raise paramiko.SSHException(f"the server announces a packet of more than {_PACKET_BYTES >> 10} KiB")
        return super().read_all(n, check_rekey)

    def _read_timeout(self, timeout: float) -> bytes:
        """Return some bytes of the lines that come before the first packet."""
        found: bytes = super()._read_timeout(timeout)  # type: ignore[misc]  # paramiko's stubs lack it
        self._greeting += len(found)
        if self._greeting > _GREETING_BYTES:
            raise paramiko.SSHException(f": the server sends more than {_GREETING_BYTES >> 10} KiB before it")
        return found


class QuietTransport(paramiko.Transport):
    """Passes over what a server sends for debugging, at each login: paramiko would escape it byte by byte to log it."""

    def _parse_debug(self, m: paramiko.Message) -> None:
        """Drop the message."""


def connect(host: HostAddress, deadline: Deadline) -> paramiko.Transport:
    """Return an authenticated connection to the host that holds the pinned key."""
    pinned, mine = _pinned_key(host), _own_key(host)
    seconds = min(CONNECT_SECONDS, deadline.remaining)
    with product_errors(host):
        sock = socket.create_connection((host.address, host.port), timeout=seconds)
        transport = QuietTransport(sock, packetizer_class=BoundedPacketizer)
    try:
        options = transport.get_security_options()
        options.key_types = _RSA_SIGNATURES if pinned.get_name() == "ssh-rsa" else (pinned.get_name(),)
        options.kex = _first(_KEX, options.kex)
        options.ciphers = _first(_CIPHER, options.ciphers)
        transport.auth_timeout = seconds
        transport.banner_timeout = seconds + 1.0  # `_negotiate` ends first
        with product_errors(host):
            _negotiate(transport, seconds)
            _verify(transport, pinned, host)
            _log_in(transport, host.user, mine, seconds)
        transport.sock.settimeout(_IDLE_LOOK_SECONDS)
    except BaseException:
        disconnect(transport)
        raise
    return transport


def disconnect(transport: paramiko.Transport) -> None:
    """End the connection, and at once the thread that reads it."""
    with contextlib.suppress(OSError):
        transport.sock.shutdown(socket.SHUT_RDWR)
    transport.close()


def _negotiate(transport: paramiko.Transport, seconds: float) -> None:
    """Agree on keys. Waits for the result itself: paramiko would look for it ten times a second."""
    done = threading.Event()
    transport.start_client(event=done)
    done.wait(seconds)
    if not transport.is_active():
        raise transport.get_exception() or paramiko.SSHException("Negotiation failed.")
    if not done.is_set():
        raise TooSlowError("key exchange")


def _log_in(transport: paramiko.Transport, user: str, key: paramiko.PKey, seconds: float) -> None:
    """Authenticate by the key. Waits for the result itself, as `_negotiate`."""
    done = threading.Event()
    transport.auth_publickey(user, key, event=done)
    if not done.wait(seconds):
        raise TooSlowError("login")
    if transport.auth_handler is not None:
        transport.auth_handler.wait_for_response(done)  # returns at once, or raises what went wrong


def _first(favourite: str, names: Iterable[str]) -> tuple[str, ...]:
    return (favourite, *(name for name in names if name != favourite))


def _verify(transport: paramiko.Transport, pinned: paramiko.PKey, host: HostAddress) -> None:
    if transport.get_remote_server_key() != pinned:
        raise _another_key(host)


@contextlib.contextmanager
def product_errors(host: HostAddress) -> Iterator[None]:
    """Turn errors of paramiko and of the socket into ours."""
    where = f"{host.name} ({host.address}:{host.port})"
    try:
        yield
    except paramiko.AuthenticationException as error:
        remedy = f"see that the public key of {host.key_file} is in the authorized keys of {host.user}"
        raise AuthenticationError(f"the host refuses the key for {host.user}", where=where, remedy=remedy) from error
    except IncompatiblePeer as error:
        raise _another_key(host) from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        remedy = "see that the host is up and its sshd answers"
        message = f"no SSH: {error or type(error).__name__}"
        raise NoSshError(message, _failure(error), where=where, remedy=remedy) from error


def _failure(error: Exception) -> SshFailure:
    match error:
        case ConnectionRefusedError():
            return SshFailure.REFUSED
        case TooSlowError():
            return SshFailure.NO_GREETING
        case EOFError() | ConnectionError():
            return SshFailure.BROKEN
        case OSError():
            return SshFailure.NO_ANSWER
    lost = isinstance(error.__context__, (EOFError, ConnectionError))  # paramiko's error on a greeting that was cut off
    return SshFailure.BROKEN if lost else SshFailure.UNKNOWN


def _another_key(host: HostAddress) -> UntrustedError:
    return UntrustedError(
        "the host does not hold the key that was pinned when it was installed",
        where=f"{host.name} ({host.address}:{host.port})",
        remedy="find out which machine has this address; if the host was reinstalled by hand, install it again",
    )


def _pinned_key(host: HostAddress) -> paramiko.PKey:
    try:
        kind, encoded = host.host_key.split()[:2]
        return paramiko.PKey.from_type_string(kind, base64.b64decode(encoded, validate=True))
    except (ValueError, paramiko.SSHException) as error:
        remedy = "install the node again, which pins its key"
        raise UsageError("its pinned host key is not a public key", where=host.name, remedy=remedy) from error


@functools.lru_cache(maxsize=16)
def _key_in(path: Path, _version: tuple[int, ...]) -> paramiko.PKey:
    return paramiko.PKey.from_path(path)


def _own_key(host: HostAddress) -> paramiko.PKey:
    """Return the controller's key. Read once for all hosts, and again when its file has changed."""
    path = Path(host.key_file)
    try:
        found = path.stat()
        return _key_in(path, (found.st_ino, found.st_size, found.st_mtime_ns))
    except (OSError, ValueError, paramiko.SSHException, UnknownKeyType) as error:
        remedy = "see ssh.private_key in site.yml: an unencrypted OpenSSH private key"
        raise EnvironmentBrokenError("the SSH key cannot be read", where=host.key_file, remedy=remedy) from error
