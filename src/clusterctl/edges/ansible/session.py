"""One ssh(1) client that talks with `bootstrap.py` on one host: bytes in, messages out, nothing blocks."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from clusterctl.edges.ansible import bootstrap
from clusterctl.edges.ansible.workspace import tool_path
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.ports import HostAddress

SOURCE = Path(bootstrap.__file__).read_bytes()
_READ = f"""\
import os
s = b""
while len(s) < {len(SOURCE)}:
    c = os.read(0, {len(SOURCE)} - len(s))
    s += c or os._exit(1)
exec(s)"""
_PYTHON = shlex.join(["/usr/bin/python3", "-I", "-c", _READ])
COMMAND = f'if [ "$(id -u)" = 0 ]; then exec {_PYTHON}; else exec sudo -n -H {_PYTHON}; fi'
"""As root, with the environment that sudo gives; the program itself comes over stdin and stands in no log."""

LINE_BYTES = 1 << 20
ERROR_BYTES = 4096
_CHUNK = 1 << 16

Message = Mapping[str, Any]


class NonsenseError(Exception):
    """What a host says is no message of ours."""


def ssh_argv(host: HostAddress, options: Sequence[str]) -> list[str]:
    """The client that starts `bootstrap.py` on the host."""
    who = ("-i", host.key_file, "-p", str(host.port), "-l", host.user, "-T")
    return ["ssh", *options, *who, "--", host.address, COMMAND]


class Session:
    """The client runs from the beginning until `stop`. `beats` says whether it waits for signs of life."""

    def __init__(self, host: HostAddress, argv: Sequence[str], request: Mapping[str, Any]) -> None:
        self.host = host
        self.beats = False
        self._unsent = memoryview(SOURCE + json.dumps(dict(request)).encode() + b"\n")
        self._unread = b""
        self._error = b""
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={"PATH": tool_path(), "HOME": "/nonexistent", "LANG": "C.UTF-8"},
                cwd="/",
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise EnvironmentBrokenError(
                f"ssh cannot be started: {error.strerror}", where=host.name, remedy="install openssh-client"
            ) from error
        for descriptor in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(descriptor, False)

    @property
    def stdin(self) -> int:
        return self._process.stdin.fileno() if self._process.stdin else -1

    @property
    def stdout(self) -> int:
        return self._process.stdout.fileno() if self._process.stdout else -1

    @property
    def stderr(self) -> int:
        return self._process.stderr.fileno() if self._process.stderr else -1

    @property
    def has_more_to_send(self) -> bool:
        return bool(self._unsent)

    def send(self, *parts: bytes) -> None:
        """Keep these for `flush`; only after everything before them has been sent."""
        self._unsent = memoryview(b"".join((self._unsent, *parts)))

    def flush(self) -> None:
        """Write as much as the pipe takes. A client that has ended is noticed where its output ends."""
        try:
            self._unsent = self._unsent[os.write(self.stdin, self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:
            self._unsent = memoryview(b"")

    def beat(self) -> None:
        """A sign of life; a full pipe holds enough of them."""
        if self.beats and not self._unsent:
            with contextlib.suppress(OSError):
                os.write(self.stdin, b"\n")

    def hear(self) -> Iterator[Message]:
        """The messages that have come; raises `EOFError` when the client has ended, `NonsenseError`."""
        try:
            chunk = os.read(self.stdout, _CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            raise EOFError
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        if len(self._unread) > LINE_BYTES:
            raise NonsenseError(f"a line of more than {LINE_BYTES >> 20} MiB")
        for line in lines:
            yield _message(line)

    def hear_errors(self) -> bool:
        """Keep the end of what the client complains of; whether it may say more."""
        try:
            chunk = os.read(self.stderr, _CHUNK)
        except BlockingIOError:
            return True
        self._error = (self._error + chunk)[-ERROR_BYTES:]
        return bool(chunk)

    def hang_up(self) -> None:
        """Say nothing more: the play on the host ends by that, and the client after it."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def end(self, patience_s: float = 0.0) -> tuple[int, str]:
        """Wait so long for the client, then kill it; its exit status and what it complained of."""
        self.hang_up()
        try:
            code = self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self.hear_errors()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        return code, self._error.decode("utf-8", "replace").strip()


def _message(line: bytes) -> Message:
    try:
        message = json.loads(line)
    except ValueError as error:
        raise NonsenseError(line[:200].decode("utf-8", "replace")) from error
    if not isinstance(message, dict) or not isinstance(message.get("event"), str):
        raise NonsenseError(line[:200].decode("utf-8", "replace"))
    return message
