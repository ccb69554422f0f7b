"""Is what the installer calls installed ours, does it let us in, and did it go where it should?"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from clusterctl.fleet.errors import (
    AuthenticationError,
    CancelledError,
    ClusterctlError,
    EdgeError,
    ParseError,
    UnreachableError,
    UntrustedError,
)
from clusterctl.fleet.event import node_event
from clusterctl.fleet.finding import Evidence, Finding, Observed, Verdict
from clusterctl.fleet.hardware.blank_disks import judge_blank
from clusterctl.fleet.hardware.disk_contract import (
    DATA,
    ROOT,
    DiskContract,
    KernelDrive,
    data_to_compare,
    judge_data,
    judge_root,
    not_compared,
    unproven,
    with_fingerprints,
)
from clusterctl.fleet.node import Serial
from clusterctl.fleet.payloads.node import RootDiskProven
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
from clusterctl.steps.executor.step import StepOutcome, with_evidence
from clusterctl.steps.install.findings import another_os, installed, unnamed, unreported_key, untrusted
from clusterctl.steps.install.job import InstallJob
from clusterctl_burnin.package_data import text_of
from clusterctl_burnin.probe import argv_for

FINDMNT = ("findmnt", "--json", "--output", "TARGET,SOURCE,FSTYPE,OPTIONS,MAJ:MIN", "/")
ANSWER_S = 30.0
"""Seconds for one answer of a host that has just booted."""
DRIVES_S = 60.0
"""Seconds for all drives together, which are read at the same time: 3 MiB of each."""


@dataclass(frozen=True, slots=True)
class InstallProof:
    """The findings of a host's drives, each with the evidence that it rests on; `root`: the proven root disk."""

    findings: tuple[Finding, ...]
    evidence: tuple[Evidence, ...]
    root: KernelDrive | None = None


@dataclass(frozen=True, slots=True)
class DiskProver:
    """Asks installed hosts. What cannot be asked or understood becomes an inconclusive finding; it never raises for a
    host's sake.
    """

    shell: Shell

    def prove(
        self, host: HostAddress, target: InstallTarget, status: InstallStatus, where: str, deadline: Deadline
    ) -> InstallProof:
        """Return the proof. `where`: name and place of the host, for the technician."""
        read = [drive for drive in status.drives or () if drive.fingerprint]
        asked = _Asked(self.shell, host, status.root or target.disk, where, deadline)
        if status.blanks:
            return asked.prove(status.drives or (), blanked=True)
        return asked.prove(status.drives if read else None)

    def prove_root(
        self, host: HostAddress, contract: DiskContract, where: str, deadline: Deadline
    ) -> Observed[Finding]:
        """Return the finding on the disk that the root file system is on, and nothing on the others."""
        proof = _Asked(self.shell, host, contract, where, deadline).prove(None)
        return Observed(proof.findings[0], proof.evidence)


class _Asked:
    """One host, and all that it has answered so far."""

    def __init__(self, shell: Shell, host: HostAddress, contract: DiskContract, where: str, deadline: Deadline) -> None:
        self._shell = shell
        self._host = host
        self._contract = contract
        self._root_disk: KernelDrive | None = None
        self._where = where
        self._deadline = deadline
        self._evidence: tuple[Evidence, ...] = ()

    def prove(self, before: tuple[KernelDrive, ...] | None, *, blanked: bool = False) -> InstallProof:
        """Return the proof. `before`: the drives as the installer read them, None where it read none of them; or those
        that it has blanked.
        """
        try:
            devices = parse_lsblk(self._run(LSBLK))
        except CancelledError:
            raise
        except ClusterctlError as error:
            found = unproven(ROOT, f"lsblk: {error.message}", str(self._contract))
            data = not_compared() if before is None else unproven(DATA, f"lsblk: {error.message}")
            return self._with_evidence([found], [data])
        root = self._root(devices)
        if before is None:
            return self._with_evidence([root], [not_compared()])
        return self._with_evidence([root], self._blank(before, devices) if blanked else self._data(before, devices))

    def _with_evidence(self, root: list[Finding], data: list[Finding]) -> InstallProof:
        return InstallProof(with_evidence((*root, *data), self._evidence), self._evidence, self._root_disk)

    def _root(self, devices: tuple[BlockDevice, ...]) -> Finding:
        try:
            mounts = parse_findmnt(self._run(FINDMNT))
        except CancelledError:
            raise
        except ClusterctlError as error:
            return unproven(ROOT, f"findmnt: {error.message}", str(self._contract))
        if not mounts:
            return unproven(ROOT, "findmnt lists no root file system", str(self._contract))
        source = mounts[-1].source.partition("[")[0]
        disks = [one.drive for one in below(devices, mounts[-1].device, source)]
        finding = judge_root(self._contract, source, disks, self._where)
        if finding.verdict is Verdict.PASS:
            self._root_disk = disks[0]
            self._contract = self._contract.named(disks[0])
        return finding

    def _blank(self, known: tuple[KernelDrive, ...], devices: tuple[BlockDevice, ...]) -> list[Finding]:
        """Return the findings on drives that must be blank. A tool that reports nothing anywhere measures nothing."""
        try:
            if not _signed(devices) and self._host.user != "root":
                devices = parse_lsblk(self._run(("sudo", "-n", *LSBLK)))  # without udev only root reads signatures
        except CancelledError:
            raise
        except ClusterctlError as error:
            return [unproven(DATA, f"lsblk with sudo: {error.message}")]
        if not _signed(devices):
            return [unproven(DATA, "lsblk reports no partition table and no file system, not even of the root disk")]
        now = [one.drive for one in whole_disks(devices)]
        return list(judge_blank(self._contract, known, now, self._where))

    def _data(self, before: tuple[KernelDrive, ...], devices: tuple[BlockDevice, ...]) -> list[Finding]:
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
        """Return its standard output; raise where it failed."""
        ran: Observed[Ran] = self._shell.run(self._host, argv, stdin, self._deadline.within(seconds))
        self._evidence += ran.evidence
        if ran.value.exit_status == 0:
            return ran.value.stdout
        printed = (ran.value.stderr.strip() or ran.value.stdout.strip()).splitlines()
        if ran.value.exit_status is None:
            raise EdgeError(f"{argv[0]} did not answer within {seconds:.0f} s")
        printed_last = printed[-1] if printed else "no output"
        raise ParseError(f"exit code {ran.value.exit_status}: {printed_last}")


def _signed(devices: tuple[BlockDevice, ...]) -> bool:
    """Return whether lsblk reads signatures at all: the root disk has one."""
    return any(one.signed for one in devices)


HOST_S = 20.0
"""Seconds for an installed host to answer its first question."""
GREETING = ("cat", "/proc/sys/kernel/random/boot_id", "/etc/hostname")


def greet(shell: Shell, host: HostAddress, deadline: Deadline) -> Observed[Ran]:
    """Return what the host prints as its boot id and its name. Raises `UnreachableError` where it did not come to that:
    a host that lets us in may still boot, and has then not reported another name.
    """
    ran = shell.run(host, GREETING, b"", deadline)
    if ran.value.exit_status == 0:
        return ran
    ended = "did not answer" if ran.value.exit_status is None else f"ended with exit code {ran.value.exit_status}"
    raise UnreachableError(f"it lets us in, and its first command {ended}", where=host.name)


@dataclass(frozen=True, slots=True)
class HostAccess:
    """How the installed host lets us in: made before the install, so that its first answer can be verified."""

    user: str
    authorized_key: str
    key_file: str
    host_key: Callable[[str], tuple[str, str]]
    """Node name → (private, public) host key; made once and kept."""
    new_host_key: Callable[[str], tuple[str, str]]
    """Return a new one, and keep it in place of the old one."""


@dataclass(frozen=True, slots=True)
class HostVerifier:
    """Connects to hosts that the installer reports as installed.

    No host is trusted on first use: without a known host key there is no connection.
    """

    shell: Shell
    access: HostAccess

    def confirm(self, job: InstallJob, deadline: Deadline) -> StepOutcome | None:
        """Return the outcome: installed where it answers over SSH with its one key; None while it still boots."""
        status = job.status
        if not status.value.addresses:
            return unnamed(job)
        if not job.host_key:
            return unreported_key(job)
        job.pin()
        try:
            greeting = self._greet(job, deadline.within(HOST_S))
        except (UnreachableError, AuthenticationError) as error:
            job.unreachable = error.message  # sshd may be up before cloud-init has let us in
            return None
        except UntrustedError:
            return another_os(job)
        except EdgeError as error:
            return untrusted(job, error)
        outcome = installed(job, status.value.addresses[0], greeting.value.stdout, status.evidence + greeting.evidence)
        return self._proven(job, outcome, deadline)

    def boots_another(self, job: InstallJob, deadline: Deadline) -> bool:
        """Return whether an OS with another host key answers: then the installer had no report of the one it wrote."""
        if not job.ours or job.unreachable or not job.status.value.addresses or not job.host_key:
            return False
        try:
            self._greet(job, Deadline.after(HOST_S, deadline.cancelled))
        except UntrustedError:
            return True
        except EdgeError:
            return False  # no answer, or it is ours: the installer's report counts
        return False

    def _proven(self, job: InstallJob, outcome: StepOutcome, deadline: Deadline) -> StepOutcome:
        """Return the outcome with the host's report of its drives; a host of another name is not read."""
        if outcome.findings[0].verdict is not Verdict.PASS:
            return outcome
        where = f"{job.node.location}, {job.node.name}"
        proof = DiskProver(self.shell).prove(self._host(job), job.target, job.status.value, where, deadline)
        findings, evidence = (*outcome.findings, *proof.findings), (*outcome.evidence, *proof.evidence)
        facts = outcome.facts
        if job.target.root_rule is not None and proof.root is not None:
            disk = Serial(proof.root.serial or proof.root.wwn)
            facts = (*facts, node_event(outcome.node, RootDiskProven(disk=disk)))
        return StepOutcome(outcome.node, findings, evidence, facts)

    def _greet(self, job: InstallJob, deadline: Deadline) -> Observed[Ran]:
        return greet(self.shell, self._host(job), deadline)

    def _host(self, job: InstallJob) -> HostAddress:
        address = job.status.value.addresses[0]
        return HostAddress(job.node.name, address, self.access.user, job.host_key, self.access.key_file)
