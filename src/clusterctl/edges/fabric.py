"""Reads the fabric with the real InfiniBand tools, on the controller."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from clusterctl.fleet.errors import EdgeError, EnvironmentBrokenError
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.ports import Clock, Deadline
from clusterctl_burnin.package_data import text_of

_POLL_SECONDS = 0.2
_GRACE_SECONDS = 5.0
_NO_MASTER = "check that a subnet manager runs, and that this controller has a link to the fabric"
_REMEDY = "run the command by hand on the controller, and mend what it complains of"
_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "TMPDIR", "LD_LIBRARY_PATH")
"""All that a tool gets of our environment, which may hold the site's secrets."""
_COMPLAINTS = ("duplicate", "no sm", "error occurred", "failed")
_UNANSWERED = ("bad status", "timed out", "timeout")
"""What it says of a device that did not answer, and then leaves out, ending with 0."""
_READINGS = 3


@dataclass(frozen=True, slots=True)
class ToolRan:
    """What a tool did."""

    exit_status: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class IbnetdiscoverReader:
    """Meets `ports.FabricReader`. `command` and `sminfo` are argument lists; without `sminfo` no SM is asked for.

    Fails closed: a non-zero exit, an empty output, a complaint on stderr (such as duplicate GUIDs, of which the tool
    silently drops one) and a subnet manager that is not master are errors, never a smaller fabric. Where a device did
    not answer in time the fabric is read again, three times in all: one that never answers is not there, one that was
    busy is. What was said of it is kept as evidence.
    """

    clock: Clock
    origin: Origin
    command: Sequence[str] = ("ibnetdiscover",)
    sminfo: Sequence[str] = ()
    where: str = "controller"

    def ibnetdiscover(self, deadline: Deadline) -> Observed[str]:
        """The whole text, with the proof that the subnet has a master where `sminfo` is configured."""
        master = self._master(deadline)
        for _ in range(_READINGS):
            read = _read(self.command, deadline)
            if not any(word in read.stderr.lower() for word in _UNANSWERED):
                break
        told = "".join(f"# stderr: {line}\n" for line in read.stderr.splitlines())
        return Observed(read.stdout, (self._evidence(self.command, read.stdout + told), *master))

    def _master(self, deadline: Deadline) -> tuple[Evidence, ...]:
        if not self.sminfo:
            return ()
        answer = output_of(self.sminfo, deadline)
        if "SMINFO_MASTER" not in answer:
            message = f"no master subnet manager: {answer.strip()[:200]}"
            raise EdgeError(message, where=" ".join(self.sminfo), remedy=_NO_MASTER)
        return (self._evidence(self.sminfo, answer),)

    def _evidence(self, argv: Sequence[str], text: str) -> Evidence:
        return Evidence(" ".join(argv), self.where, self.clock.now(), self.origin, text.encode())


@dataclass(frozen=True, slots=True)
class CounterReader:
    """Reads the error counters of all ports. Fails closed as `IbnetdiscoverReader` does.

    ibqueryerrors ends with 1 where it found errors, and with 0, silent, where it found no subnet manager: its summary
    is what proves that it looked.
    """

    clock: Clock
    origin: Origin
    command: Sequence[str] = ("ibqueryerrors",)
    where: str = "controller"

    def ibqueryerrors(self, deadline: Deadline) -> Observed[str]:
        """The whole text."""
        text = output_of(self.command, deadline, fine=(0, 1))
        if "## Summary:" not in text:
            raise EdgeError("no summary: it read no port", where=" ".join(self.command), remedy=_NO_MASTER)
        evidence = Evidence(" ".join(self.command), self.where, self.clock.now(), self.origin, text.encode())
        return Observed(text, (evidence,))


def output_of(argv: Sequence[str], deadline: Deadline, fine: Collection[int] = (0,)) -> str:
    """What the command prints; raises EdgeError naming it where it fails, complains or says nothing.

    `fine` are the exit statuses of a command that did its work.
    """
    return _read(argv, deadline, fine).stdout


def _read(argv: Sequence[str], deadline: Deadline, fine: Collection[int] = (0,)) -> ToolRan:
    command = " ".join(argv)
    ran = run_tool(argv, deadline)
    complaint = ran.stderr.strip()[:300]
    if ran.exit_status not in fine:
        raise EdgeError(f"exit status {ran.exit_status}: {complaint or 'no message'}", where=command, remedy=_REMEDY)
    if any(word in ran.stderr.lower() for word in _COMPLAINTS):
        raise EdgeError(f"it complains: {complaint}", where=command, remedy=_REMEDY)
    if not ran.stdout.strip():
        raise EdgeError(f"no output; stderr: {complaint or 'empty'}", where=command, remedy=_REMEDY)
    return ran


def run_tool(
    argv: Sequence[str],
    deadline: Deadline,
    *,
    lacking: str = "apt-get install infiniband-diags",
    also: Sequence[str] = (),
) -> ToolRan:
    """Run it without a shell, in a session of its own, which ends with us. `lacking`: what to do where there is no such
    program; `also`: further variables of our environment that it gets.

    `supervise.py` runs in front of it: when nobody reads its output any more (out of time, cancelled, or we are killed)
    it ends the whole session.
    """
    doing = f"running {argv[0]}"
    deadline.check(doing)
    if shutil.which(argv[0]) is None:
        raise EnvironmentBrokenError("cannot run it: there is no such program", where=argv[0], remedy=lacking)
    seconds = f"{deadline.remaining + _GRACE_SECONDS:.0f}"
    with subprocess.Popen(
        [sys.executable, "-I", "-c", text_of("node/supervise.py"), seconds, *argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**{name: os.environ[name] for name in (*_INHERITED, *also) if name in os.environ}, "LC_ALL": "C"},
        start_new_session=True,
    ) as process:
        stdout, stderr = _wait(process, deadline, doing)
    return ToolRan(process.returncode, _decoded(stdout, argv), stderr.decode(errors="replace"))


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
