"""Reads the fabric with the real InfiniBand tools, on the controller."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl.fleet.errors import EdgeError, EnvironmentBrokenError
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.ports import Clock, Deadline

_POLL_SECONDS = 0.2
_NO_MASTER = "check that a subnet manager runs, and that this controller has a link to the fabric"
_REMEDY = "run the command by hand on the controller, and mend what it complains of"
_COMPLAINTS = ("duplicate", "no sm", "error occurred", "failed")


@dataclass(frozen=True, slots=True)
class _Ran:
    exit_status: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class IbnetdiscoverReader:
    """Meets `ports.FabricReader`. `command` and `sminfo` are argument lists; without `sminfo` no SM is asked for.

    Fails closed: a non-zero exit, an empty output, a complaint on stderr (such as duplicate GUIDs, of which the tool
    silently drops one) and a subnet manager that is not master are errors, never a smaller fabric.
    """

    clock: Clock
    origin: Origin
    command: Sequence[str] = ("ibnetdiscover",)
    sminfo: Sequence[str] = ()
    where: str = "controller"

    def ibnetdiscover(self, deadline: Deadline) -> Observed[str]:
        """The whole text, with the proof that the subnet has a master where `sminfo` is configured."""
        master = self._master(deadline)
        text = _output(self.command, deadline)
        return Observed(text, (self._evidence(self.command, text), *master))

    def _master(self, deadline: Deadline) -> tuple[Evidence, ...]:
        if not self.sminfo:
            return ()
        answer = _output(self.sminfo, deadline)
        if "SMINFO_MASTER" not in answer:
            message = f"no master subnet manager: {answer.strip()[:200]}"
            raise EdgeError(message, where=" ".join(self.sminfo), remedy=_NO_MASTER)
        return (self._evidence(self.sminfo, answer),)

    def _evidence(self, argv: Sequence[str], text: str) -> Evidence:
        return Evidence(" ".join(argv), self.where, self.clock.now(), self.origin, text.encode())


def _output(argv: Sequence[str], deadline: Deadline) -> str:
    """What the command prints; raises EdgeError naming it where it fails, complains or says nothing."""
    command = " ".join(argv)
    ran = _run(argv, deadline)
    complaint = ran.stderr.strip()[:300]
    if ran.exit_status != 0:
        raise EdgeError(f"exit status {ran.exit_status}: {complaint or 'no message'}", where=command, remedy=_REMEDY)
    if any(word in complaint.lower() for word in _COMPLAINTS):
        raise EdgeError(f"it complains: {complaint}", where=command, remedy=_REMEDY)
    if not ran.stdout.strip():
        raise EdgeError(f"no output; stderr: {complaint or 'empty'}", where=command, remedy=_REMEDY)
    return ran.stdout


def _run(argv: Sequence[str], deadline: Deadline) -> _Ran:
    """Run it without a shell, in its own session; the whole session is killed past the deadline or when cancelled."""
    doing = f"running {argv[0]}"
    deadline.check(doing)
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C"},
            start_new_session=True,
        )
    except OSError as error:
        raise EnvironmentBrokenError(
            f"cannot run it: {error.strerror}", where=argv[0], remedy="apt-get install infiniband-diags"
        ) from error
    with process:
        try:
            stdout, stderr = _wait(process, deadline, doing)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return _Ran(process.returncode, _decoded(stdout, argv), stderr.decode(errors="replace"))


def _wait(process: subprocess.Popen[bytes], deadline: Deadline, doing: str) -> tuple[bytes, bytes]:
    while True:
        try:
            return process.communicate(timeout=min(_POLL_SECONDS, deadline.remaining))
        except subprocess.TimeoutExpired:
            deadline.check(doing)


def _decoded(output: bytes, argv: Sequence[str]) -> str:
    try:
        return output.decode()
    except UnicodeDecodeError as error:
        message = f"output is not UTF-8 at byte {error.start}"
        raise EdgeError(message, where=" ".join(argv), remedy=_REMEDY) from error
