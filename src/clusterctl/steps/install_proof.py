"""After the first boot: the host itself says which disk it runs from, and what its other drives hold."""

from __future__ import annotations

import json
from dataclasses import dataclass

from clusterctl.fleet.errors import CancelledError, ClusterctlError, EdgeError, ParseError
from clusterctl.fleet.finding import Evidence, Finding, Observed
from clusterctl.fleet.hardware.disk_contract import (
    DATA,
    ROOT,
    SeenDrive,
    data_to_compare,
    judge_data,
    judge_root,
    unproven,
    untold,
    with_fingerprints,
)
from clusterctl.formats.host.block_devices import (
    LSBLK,
    BlockDevice,
    below,
    parse_fingerprints,
    parse_lsblk,
    whole_disks,
)
from clusterctl.formats.host.mounts import parse_findmnt
from clusterctl.ports import Deadline, HostAddress, InstallStatus, InstallTarget, Ran, Shell
from clusterctl.steps.step import with_evidence
from clusterctl_burnin.package_data import text_of
from clusterctl_burnin.probe import argv_for

FINDMNT = ("findmnt", "--json", "--output", "TARGET,SOURCE,FSTYPE,OPTIONS,MAJ:MIN", "/")
ANSWER_S = 30.0
"""Seconds for one answer of a host that has just booted."""
DRIVES_S = 60.0
"""Seconds for all drives together, which are read at the same time: 3 MiB of each."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The findings of a host's drives, each with the evidence that it rests on."""

    findings: tuple[Finding, ...]
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class DiskProver:
    """Asks installed hosts. What cannot be asked or understood becomes an inconclusive finding; it never raises for a
    host's sake.
    """

    shell: Shell

    def prove(
        self, host: HostAddress, target: InstallTarget, status: InstallStatus, where: str, deadline: Deadline
    ) -> Proof:
        """`where`: name and place of the host, for who has to go there."""
        read = [drive for drive in status.drives or () if drive.fingerprint]
        return _Asked(self.shell, host, target, where, deadline).prove(status.drives if read else None)


class _Asked:
    """One host, and all that it has answered so far."""

    def __init__(self, shell: Shell, host: HostAddress, target: InstallTarget, where: str, deadline: Deadline) -> None:
        self._shell = shell
        self._host = host
        self._contract = target.disk
        self._where = where
        self._deadline = deadline
        self._evidence: tuple[Evidence, ...] = ()

    def prove(self, before: tuple[SeenDrive, ...] | None) -> Proof:
        """`before`: the drives as the installer read them; None where it read none of them."""
        try:
            devices = parse_lsblk(self._run(LSBLK))
        except CancelledError:
            raise
        except ClusterctlError as error:
            found = unproven(ROOT, f"lsblk: {error.message}", str(self._contract))
            data = untold() if before is None else unproven(DATA, f"lsblk: {error.message}")
            return self._told([found], [data])
        root = self._root(devices)
        return self._told([root], [untold()] if before is None else self._data(before, devices))

    def _told(self, root: list[Finding], data: list[Finding]) -> Proof:
        return Proof(with_evidence((*root, *data), self._evidence), self._evidence)

    def _root(self, devices: tuple[BlockDevice, ...]) -> Finding:
        try:
            mounts = parse_findmnt(self._run(FINDMNT))
        except CancelledError:
            raise
        except ClusterctlError as error:
            return unproven(ROOT, f"findmnt: {error.message}", str(self._contract))
        if not mounts:
            return unproven(ROOT, "findmnt tells of no root file system", str(self._contract))
        source = mounts[-1].source.partition("[")[0]
        disks = [one.drive for one in below(devices, mounts[-1].device, source)]
        return judge_root(self._contract, source, disks, self._where)

    def _data(self, before: tuple[SeenDrive, ...], devices: tuple[BlockDevice, ...]) -> list[Finding]:
        now = [one.drive for one in whole_disks(devices)]
        try:
            digests = self._fingerprints(data_to_compare(self._contract, before, now))
        except CancelledError:
            raise
        except ClusterctlError as error:
            return [unproven(DATA, f"the drives could not be read: {error.message}")]
        return list(judge_data(self._contract, before, with_fingerprints(now, digests), self._where))

    def _fingerprints(self, paths: tuple[str, ...]) -> dict[str, str]:
        if not paths:
            return {}
        call = f"\n\nmain(json.loads({json.dumps(json.dumps(paths))}), {DRIVES_S})\n"
        script = (text_of("node/fingerprints.py") + call).encode()
        answer = self._run(argv_for(self._host.user, privileged=True), script, ANSWER_S + DRIVES_S)
        return {path: one.digest for path, one in parse_fingerprints(answer).items()}

    def _run(self, argv: tuple[str, ...], stdin: bytes = b"", seconds: float = ANSWER_S) -> str:
        """Its standard output; raises where it did not end well."""
        ran: Observed[Ran] = self._shell.run(self._host, argv, stdin, self._deadline.within(seconds))
        self._evidence += ran.evidence
        if ran.value.exit_status == 0:
            return ran.value.stdout
        said = (ran.value.stderr.strip() or ran.value.stdout.strip()).splitlines()
        if ran.value.exit_status is None:
            raise EdgeError(f"{argv[0]} did not answer within {seconds:.0f} s", where=self._host.name)
        raise ParseError(f"exit code {ran.value.exit_status}: {said[-1] if said else 'no word'}", where=argv[0])
