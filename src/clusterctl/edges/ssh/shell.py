"""Commands on hosts over SSH (paramiko): one connection per host, kept and shared by threads.

A host is trusted by the one key that its `HostAddress` pins and by nothing else: no known_hosts file, no agent, no
password, no trust on first use. A command dies with its channel (`burnin/node/processes.py` runs in front of it).
"""

from __future__ import annotations

import contextlib
import select
import shlex
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import paramiko

from clusterctl.edges.ssh.cancel import CancelWatch
from clusterctl.edges.ssh.connection import CONNECT_SECONDS, TooSlowError, connect, disconnect, product_errors
from clusterctl.edges.tally import Asked, count
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError, UsageError
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.ports import Clock, Deadline, HostAddress, Ran
from clusterctl_burnin.node.processes import MARKER as SUPERVISOR_MARKER
from clusterctl_burnin.package_data import text_of

EVIDENCE_BYTES = 1 << 20
OUTPUT_BYTES = 32 << 20
"""More than this of stdout or stderr is an error: no command of ours prints as much."""

MARKER = SUPERVISOR_MARKER.encode()
_REMOTE_MARGIN = 30.0  # seconds after our deadline at which the node ends a command even if it cannot see us gone
_SUDO = ("sudo", "-n")
_POLL = 1.0  # seconds until the first look whether a silent command has ended, and left its output open
_LONGEST_POLL = 4.0  # each look costs 0.2 ms: later ones have twice the distance, up to this
_CHILD_GRACE = 1.0
_CHUNK = 1 << 16
_NO_STATUS = -1  # paramiko's exit status of a channel that closed without one


@dataclass(slots=True)
class _Connection:
    """A host's transport; `lock` is held while it is being opened."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    transport: paramiko.Transport | None = None

    def close(self) -> None:
        if self.transport is not None:
            disconnect(self.transport)
            self.transport = None


class ParamikoShell:
    """Meets `Shell`. `origin` is the site's word on evidence; close it (or use `with`) to end all connections."""

    def __init__(self, clock: Clock, origin: Origin) -> None:
        self._clock = clock
        self._origin = origin
        self._connections: dict[HostAddress, _Connection] = {}
        self._lock = threading.Lock()
        self._cancels = CancelWatch()
        self._supervisor = text_of("node/processes.py")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End all connections, and with them whatever still runs on the hosts."""
        with self._lock:
            connections, self._connections = self._connections, {}
        for connection in connections.values():
            connection.close()

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        """Run `argv` with `stdin`; past the deadline it is killed and `exit_status` is None.

        Raises `UnreachableError`, `AuthenticationError`, `EdgeError` (another host key), `OutcomeUnknownError` (the
        connection broke while the command ran) and `CancelledError`.
        """
        if not argv:
            raise UsageError("no command to run", where=host.name)
        deadline.check(f"connecting to {host.name}")
        count(Asked.HOST)
        at, started = self._clock.now(), time.monotonic()
        with contextlib.closing(self._channel(host, deadline)) as channel:
            status, stdout, stderr = self._converse(host, channel, argv, stdin, deadline)
        head, marker, rest = stderr.partition(MARKER)
        ran = Ran(status, _text(stdout), _text(head + rest), time.monotonic() - started)
        origin = self._origin.of_peer(simulated=bool(marker))
        return Observed(ran, (Evidence(shlex.join(argv), host.name, at, origin, stdout[:EVIDENCE_BYTES]),))

    def _channel(self, host: HostAddress, deadline: Deadline) -> paramiko.Channel:
        """Return a fresh channel; a kept connection that turns out dead (the host rebooted) is opened again once."""
        with self._lock:
            connection = self._connections.setdefault(host, _Connection())
        with connection.lock:
            if connection.transport is not None:
                with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
                    return connection.transport.open_session(timeout=min(CONNECT_SECONDS, deadline.remaining))
                connection.close()
                deadline.check(f"connecting to {host.name}")
            connection.transport = connect(host, deadline)
            with product_errors(host):
                return _session(connection.transport, min(CONNECT_SECONDS, deadline.remaining))

    def _converse(
        self, host: HostAddress, channel: paramiko.Channel, argv: Sequence[str], stdin: bytes, deadline: Deadline
    ) -> tuple[int | None, bytes, bytes]:
        """Exit status (None: out of time), stdout and stderr."""
        output = _Output(host.name)
        try:
            channel.settimeout(deadline.remaining)
            channel.exec_command(self._guarded(argv, deadline.remaining + _REMOTE_MARGIN))
            channel.sendall(stdin)
            channel.shutdown_write()
            with self._cancels.descriptor(deadline.cancelled) as cancelled:
                in_time = output.collect(channel, deadline, cancelled)
        except TimeoutError:
            in_time = False
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise _broke(host, argv, error) from error
        status = channel.recv_exit_status() if in_time else None
        if status == _NO_STATUS:
            raise _broke(host, argv, None)
        return status, bytes(output.stdout), bytes(output.stderr)

    def _guarded(self, argv: Sequence[str], seconds: float) -> str:
        """Return the command line behind the supervisor; behind sudo, so that it may kill what sudo started."""
        sudo = _SUDO if tuple(argv[: len(_SUDO)]) == _SUDO else ()
        guard = ("python3", "-I", "-S", "-c", self._supervisor, f"{seconds:.0f}")
        return shlex.join((*sudo, *guard, *argv[len(sudo) :]))


@dataclass(slots=True)
class _Output:
    """The output of a channel so far."""

    where: str
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)

    def collect(self, channel: paramiko.Channel, deadline: Deadline, cancelled: int) -> bool:
        """Read until the command has ended (True) or the deadline has passed (False).

        `cancelled`: a descriptor that becomes readable once the deadline's token is set.
        A command that has ended, but left a child holding its output open, is waited for a moment only.
        """
        poll = select.poll()
        poll.register(channel.fileno(), select.POLLIN)
        poll.register(cancelled, select.POLLIN)
        patience, pause = _CHILD_GRACE, _POLL
        while True:
            if deadline.cancelled.is_set():
                deadline.check(f"running a command on {self.where}")
            if self._drain(channel):
                continue
            ended = channel.exit_status_ready()
            if ended and (channel.eof_received or channel.closed or patience <= 0):
                return True
            if deadline.remaining <= 0:
                return False
            if ended:
                patience, pause = patience - _POLL, _POLL
            _wait(channel, poll, min(pause, deadline.remaining))
            pause = min(2 * pause, _LONGEST_POLL)

    def _drain(self, channel: paramiko.Channel) -> bool:
        """Take what has come; whether anything had."""
        before = len(self.stdout) + len(self.stderr)
        if channel.recv_ready():
            self.stdout += channel.recv(_CHUNK)
        if channel.recv_stderr_ready():
            self.stderr += channel.recv_stderr(_CHUNK)
        if max(len(self.stdout), len(self.stderr)) > OUTPUT_BYTES:
            raise EdgeError(f"the command wrote more than {OUTPUT_BYTES >> 20} MiB", where=self.where)
        return len(self.stdout) + len(self.stderr) > before


def _wait(channel: paramiko.Channel, poll: select.poll, seconds: float) -> None:
    """Wait for output; once there is no more, for the exit status."""
    if channel.eof_received:
        channel.status_event.wait(min(_POLL, seconds))
    else:
        poll.poll(seconds * 1000)


def _session(transport: paramiko.Transport, seconds: float) -> paramiko.Channel:
    try:
        return transport.open_session(timeout=seconds)
    except paramiko.SSHException as error:
        if transport.is_active() and not isinstance(error, paramiko.ChannelException):
            raise TooSlowError("session") from error
        raise


def _broke(host: HostAddress, argv: Sequence[str], error: Exception | None) -> OutcomeUnknownError:
    detail = f": {error or type(error).__name__}" if error is not None else ""
    remedy = "see whether the host is up, then run the step again"
    return OutcomeUnknownError(f"the connection broke while {argv[0]} ran{detail}", where=host.name, remedy=remedy)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
