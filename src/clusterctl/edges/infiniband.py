"""The InfiniBand fabric, through the real tools (infiniband-diags) on the controller.

`ibnetdiscover` reads the topology, `ibqueryerrors` the error counters, `ibportstate` and `smpquery` read and set single
switch ports.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from clusterctl.edges.processes import REMEDY, ProcessResult, Surroundings, run
from clusterctl.fleet.errors import EdgeError, NoFabricPortError, OutcomeUnknownError, ParseError
from clusterctl.fleet.fabric.topology import PortState
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.fleet.node import Guid
from clusterctl.formats.infiniband.ibdiagnet import is_db_csv, without_keys
from clusterctl.formats.infiniband.port_queries import parse_ibportstate, parse_nodeinfo_guid
from clusterctl.formats.infiniband.sminfo import parse_sminfo
from clusterctl.ports import Clock, Deadline, MasterActivity

log = logging.getLogger(__name__)

_TOOLS = Surroundings(missing="apt-get install infiniband-diags")
_NO_MASTER = "check that a subnet manager runs, and that this controller has a link to the fabric"
_READ_ERRORS = ("duplicate", "no sm", "error occurred", "failed")
"""Parts of the messages, in any case, with which the tools read incompletely and still exit with 0. libibnetdisc.so.5:
"Duplicate Node: Node with guid …", "Duplicate Port: Port with guid …", "Error Occurred when trying to insert new …",
"send failed", "Failed to …"; libibmad.so.5: "… failed". They carry no code.
"""
_NO_RESPONSE = ("bad status", "timed out", "timeout")
"""Likewise for a device that did not answer and is left out. libibnetdisc.so.5: "umad (… Attr 0x…) bad status 110;
Connection timed out", "mad (…) bad status 0x…"; libibmad.so.5: "timeout after 3 retries".
"""
_NO_PORT = ("can't open umad port", "can't open mad port", "can't init umad library", "umad_open_port")
"""Likewise, with an exit status that is not 0, where the machine has no InfiniBand port or the user may not open it.
libibmad.so.5: "mad_rpc_open_port: can't open UMAD port (mlx5_0:1)"; libibnetdisc.so.5: "can't open MAD port";
saquery: "umad_open_port on port (null):0 failed".
"""
_READINGS = 3
_SIGNALS = range(129, 193)
"""Exit status of a shell or sshd where a signal ended the command: 128 and the signal's number."""
_NO_PEER = 255
"""ibportstate's exit status where it has read the port, but the port's peer does not answer, as behind a cut link."""


@dataclass(frozen=True, slots=True)
class IbnetdiscoverReader:
    """Implements `ports.FabricReader`. `command` and `sminfo` are argument lists; an empty `sminfo` skips the check for
    a master subnet manager.

    Fails closed: a non-zero exit status, an empty output, an error on stderr (such as duplicate GUIDs, of which the
    tool silently drops one) and a subnet manager that is not master are errors, never a smaller fabric. Where a device
    did not answer in time, the fabric is read again, three times in all: a device that never answers is absent, a busy
    one answers later. The stderr output is kept as evidence.
    """

    clock: Clock
    origin: Origin
    command: Sequence[str] = ("ibnetdiscover",)
    sminfo: Sequence[str] = ()
    where: str = "controller"

    def ibnetdiscover(self, deadline: Deadline) -> Observed[str]:
        """Return the whole text; the evidence includes the master subnet manager where `sminfo` is configured."""
        master = self._master(deadline)
        for _ in range(_READINGS):
            read = _read(self.command, deadline)
            if not any(sign in read.stderr.lower() for sign in _NO_RESPONSE):
                break
        stderr = "".join(f"# stderr: {line}\n" for line in read.stderr.splitlines())
        return Observed(read.stdout, (self._evidence(self.command, read.stdout + stderr), *master))

    def _master(self, deadline: Deadline) -> tuple[Evidence, ...]:
        if not self.sminfo:
            return ()
        answer = _read(self.sminfo, deadline).stdout
        if "SMINFO_MASTER" not in answer:
            message = f"no master subnet manager: {answer.strip()[:200]}"
            raise EdgeError(message, where=" ".join(self.sminfo), remedy=_NO_MASTER)
        return (self._evidence(self.sminfo, answer),)

    def _evidence(self, argv: Sequence[str], text: str) -> Evidence:
        return Evidence(" ".join(argv), self.where, self.clock.now(), self.origin, text.encode())


@dataclass(frozen=True, slots=True)
class SminfoReader:
    """Implements `ports.MasterReader` by `sminfo`."""

    command: Sequence[str]

    def activity(self, deadline: Deadline) -> MasterActivity:
        """Return what the master has sent. Raises `EdgeError` where none answers, and `ParseError`."""
        found = parse_sminfo(_read(self.command, deadline).stdout)
        if not found.master:
            raise EdgeError("no master subnet manager answers", where=" ".join(self.command), remedy=_NO_MASTER)
        return MasterActivity(found.guid, found.activity)


@dataclass(frozen=True, slots=True)
class CounterReader:
    """Reads the error counters of all ports. Fails closed as `IbnetdiscoverReader` does.

    ibqueryerrors exits with 1 where it found errors, and silently with 0 where it found no subnet manager: its summary
    proves that it read the ports.
    """

    clock: Clock
    origin: Origin
    command: Sequence[str] = ("ibqueryerrors",)
    where: str = "controller"

    def ibqueryerrors(self, deadline: Deadline) -> Observed[str]:
        """Return the whole text."""
        return self._observed((self.command,), deadline)

    def traffic(self, deadline: Deadline) -> Observed[str]:
        """Return the texts of both calls, one after the other, under the middle of the time of the second one."""
        return self._observed((self.command, (*self.command, "--counters")), deadline)

    def _observed(self, commands: Sequence[Sequence[str]], deadline: Deadline) -> Observed[str]:
        texts = []
        for command in commands:
            at = self.clock.now()
            text = _read(command, deadline, success=(0, 1)).stdout
            took = self.clock.now() - at
            if "## Summary:" not in text:
                raise EdgeError("no summary: it read no port", where=" ".join(command), remedy=_NO_MASTER)
            texts.append(text)
        if len(texts) > 1:
            at += took / 2
            texts.insert(0, f"# {at:%Y-%m-%dT%H:%M:%S.%f}Z, read within {took.total_seconds():.3f} s\n")
        text = "".join(texts)
        evidence = Evidence(" ".join(commands[-1]), self.where, at, self.origin, text.encode())
        return Observed(text, (evidence,))


@dataclass(frozen=True, slots=True)
class TableReader:
    """Implements `ports.TableReader`. Fails closed as `IbnetdiscoverReader` does."""

    clock: Clock
    origin: Origin
    command: Sequence[str] = ("dump_fts",)
    where: str = "controller"

    def dump_fts(self, deadline: Deadline) -> Observed[str]:
        """Return the whole text."""
        text = _read(self.command, deadline).stdout
        evidence = Evidence(" ".join(self.command), self.where, self.clock.now(), self.origin, text.encode())
        return Observed(text, (evidence,))


@dataclass(frozen=True, slots=True)
class TelemetryReader:
    """Implements `ports.TelemetryReader`. The keys of the fabric are blanked before anything is stored."""

    clock: Clock
    origin: Origin
    command: Sequence[str]
    where: str = "controller"

    def db_csv(self, deadline: Deadline) -> Observed[str]:
        """Return the whole text without keys. Raises `EdgeError` where the command fails or prints another text."""
        at = self.clock.now()
        ran = run(self.command, deadline, _TOOLS)
        if ran.exit_status != 0:
            raise _failure(ran, self.command)
        if not is_db_csv(ran.stdout):
            remedy = "name a command that prints ibdiagnet2.db_csv in fabric.telemetry of site.yml"
            raise EdgeError("its output is no db_csv", where=" ".join(self.command), remedy=remedy)
        text = without_keys(ran.stdout)
        return Observed(text, (Evidence(" ".join(self.command), self.where, at, self.origin, text.encode()),))


@dataclass(frozen=True, slots=True)
class IbPorts:
    """Implements `ports.PortAdmin`."""

    clock: Clock
    origin: Origin
    ibportstate: Sequence[str] = ("ibportstate",)
    smpquery: Sequence[str] = ("smpquery",)
    where: str = "controller"

    def device(self, lid: int, deadline: Deadline) -> Observed[Guid]:
        """Return the GUID of the device with this LID."""
        argv = (*self.smpquery, "nodeinfo", str(lid))
        text = _read(argv, deadline).stdout
        return Observed(parse_nodeinfo_guid(text, file=" ".join(argv)), (self._evidence(argv, text),))

    def state(self, lid: int, port: int, deadline: Deadline) -> Observed[PortState]:
        """Return the state of one switch port."""
        argv = (*self.ibportstate, "-L", str(lid), str(port), "query")
        ran = run(argv, deadline, _TOOLS)
        if ran.exit_status not in (0, _NO_PEER):
            raise _failure(ran, argv)
        return Observed(parse_ibportstate(ran.stdout, file=" ".join(argv)), (self._evidence(argv, ran.stdout),))

    def set_disabled(self, lid: int, port: int, disabled: bool, deadline: Deadline) -> Observed[PortState]:
        """Disable or enable the port and return the state that it is in afterwards.

        The tool's own report of success proves nothing: the port is read again.
        """
        argv = (*self.ibportstate, "-L", str(lid), str(port), "disable" if disabled else "enable")
        ran = run(argv, deadline, _TOOLS)
        try:
            after = self.state(lid, port, deadline)
        except (EdgeError, ParseError) as error:
            remedy = "look at the port with ibportstate query, then run this again: it reads the port before it sets it"
            message = f"the port was set, but cannot be read: {error}"
            raise OutcomeUnknownError(message, where=" ".join(argv), remedy=remedy) from error
        if after.value.disabled is not disabled:
            message = f"the port is still {after.value.physical}: {ran.error_output or 'no message'}"
            raise EdgeError(message, where=" ".join(argv), remedy=REMEDY)
        return Observed(after.value, (self._evidence(argv, ran.stdout), *after.evidence))

    def _evidence(self, argv: Sequence[str], text: str) -> Evidence:
        return Evidence(" ".join(argv), self.where, self.clock.now(), self.origin, text.encode())


def _read(argv: Sequence[str], deadline: Deadline, success: Collection[int] = (0,)) -> ProcessResult:
    """Run a reading tool; raise `EdgeError` where it fails, prints an error or prints nothing.

    One that a signal ended is run once more: the tools of infiniband-diags crash now and then while a fabric changes.
    """
    ran = run(argv, deadline, _TOOLS)
    if ran.exit_status < 0 or ran.exit_status in _SIGNALS:
        log.warning("%s was ended by a signal (exit status %d): it is run once more", argv[0], ran.exit_status)
        ran = run(argv, deadline, _TOOLS)
    if ran.exit_status not in success:
        raise _failure(ran, argv)
    if any(sign in ran.stderr.lower() for sign in _READ_ERRORS):
        raise EdgeError(f"it reports an error: {ran.error_output}", where=" ".join(argv), remedy=REMEDY)
    if not ran.stdout.strip():
        message = f"no output; stderr: {ran.error_output or 'empty'}"
        raise EdgeError(message, where=" ".join(argv), remedy=REMEDY)
    return ran


def _failure(ran: ProcessResult, argv: Sequence[str]) -> EdgeError:
    """Return the error for a tool that failed."""
    if not any(sign in ran.stderr.lower() for sign in _NO_PORT):
        return ran.failure(argv)
    first = ran.error_output.partition("\n")[0]
    remedy = (
        "load ib_umad, run as root, and check the HCA with ibstat; where the controller has no HCA, name a host "
        "that has one in fabric.ibnetdiscover of site.yml"
    )
    return NoFabricPortError(f"no InfiniBand port can be opened: {first}", where=" ".join(argv), remedy=remedy)
