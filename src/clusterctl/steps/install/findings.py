"""The outcomes of an install, with findings and remedies. Pure."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.fleet.errors import ClusterctlError, EdgeError
from clusterctl.fleet.event import node_event
from clusterctl.fleet.finding import Evidence, Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.part_health import label
from clusterctl.fleet.payloads.node import NodeAddressed
from clusterctl.ports import FailureKind, InstallState, Power
from clusterctl.steps.executor.reachability import BmcState, bmc_unreadable
from clusterctl.steps.executor.step import StepOutcome, with_evidence
from clusterctl.steps.install.job import InstallJob


def installed(job: InstallJob, address: str, greeting: str, evidence: tuple[Evidence, ...]) -> StepOutcome:
    boot_id, _, hostname = greeting.strip().partition("\n")
    right = hostname.strip() == job.node.name
    finding = Finding(
        check="install",
        verdict=Verdict.PASS if right else Verdict.FAIL,
        code=Code.PASSED if right else Code.WRONG_HOST_NAME,
        cause=f"answers at {address} with its pinned host key, boot {boot_id}",
        measured=hostname.strip(),
        expected=job.node.name,
        remedy="" if right else f"the host at {address} is not {job.node.name}: check its DHCP lease",
        serial=job.target.serial,
    )
    facts = (node_event(job.node.id, NodeAddressed(address=address)),)
    return StepOutcome(job.node.id, with_evidence([finding], evidence), evidence, facts)


def unreadable(job: InstallJob, error: ClusterctlError) -> StepOutcome:
    """Return the outcome of a machine about which the installer, its BMC or its host reports what cannot be read."""
    finding = Finding(
        check="install",
        verdict=Verdict.INCONCLUSIVE,
        code=Code.OUTPUT_UNREADABLE,
        cause=error.message,
        remedy=error.remedy or f"read the evidence, then run clusterctl install on {job.node.name} again",
        serial=job.target.serial,
        deterministic=False,
        where=error.where,
    )
    return StepOutcome(job.node.id, with_evidence([finding], job.status.evidence), job.status.evidence)


def foreign(job: InstallJob) -> StepOutcome:
    """Return the outcome of a machine that was installed, but not by us: it is never wiped and never trusted."""
    finding = Finding(
        check="install",
        verdict=Verdict.FAIL,
        code=Code.FOREIGN_OS,
        cause="the installer already has an OS on this machine that clusterctl did not put there",
        measured=job.status.value.detail,
        remedy=f"if no one uses {job.node.name}, release it in the installer, then run again",
        serial=job.target.serial,
    )
    return StepOutcome(job.node.id, with_evidence([finding], job.status.evidence), job.status.evidence)


def root_unclear(job: InstallJob, cause: str, decide: str) -> StepOutcome:
    """Return the outcome of a machine without a clear root disk: nothing was written, and an operator must decide."""
    status = job.status
    finding = Finding(
        check="install",
        verdict=Verdict.INCONCLUSIVE,
        code=Code.ROOT_DISK_UNCLEAR,
        cause=cause,
        expected=str(job.target.disk),
        remedy=f"{decide}; then run clusterctl discover and clusterctl install on {job.node.name} again",
        serial=job.target.serial,
    )
    return StepOutcome(job.node.id, with_evidence([finding], status.evidence), status.evidence)


def another_os(job: InstallJob) -> StepOutcome:
    """Return the outcome of a machine that got our OS and boots another one: some other disk comes first."""
    node, status = job.node, job.status
    drives = node.inventory.drives if node.inventory else None
    disk = next((label(drive) for drive in drives or () if drive.serial == node.root_disk), f"{node.root_disk}")
    finding = Finding(
        check="install",
        verdict=Verdict.FAIL,
        code=Code.WRONG_BOOT_DISK,
        cause=f"the OS is installed, but another OS answers at {status.value.addresses[0]}: it holds another host key",
        measured="another host key",
        expected="the host key that was installed",
        remedy=(
            f"{node.location}, {node.name}: set disk {disk} first in the boot order, and wipe or remove the disk "
            "that it boots from now"
        ),
        serial=job.target.serial,
    )
    return StepOutcome(node.id, with_evidence([finding], status.evidence), status.evidence)


def unnamed(job: InstallJob) -> StepOutcome:
    """Return the outcome of a machine without a known address of its host."""
    return _distrusted(
        job,
        "the installer names no address of the installed host",
        f"look at the leases that {job.node.name} was given, and run clusterctl install on it again",
    )


def unreported_key(job: InstallJob) -> StepOutcome:
    """Return the outcome of a machine with a host that cannot prove itself."""
    return _distrusted(
        job,
        "installed, but its host key never reached the installer: clusterctl does not connect to it",
        f"install it once more: clusterctl release {job.node.name}, then clusterctl install",
    )


def untrusted(job: InstallJob, error: EdgeError) -> StepOutcome:
    return _distrusted(job, f"installed, but not trusted: {error.message}", error.remedy or "attach a console to it")


def stranger(job: InstallJob, error: EdgeError, seen: tuple[Evidence, ...]) -> StepOutcome:
    """Return the outcome of a machine that is not the one to reinstall, or not as it was."""
    node, evidence = job.node, job.status.evidence + seen
    finding = Finding(
        check="install",
        verdict=Verdict.FAIL,
        code=Code.NOT_THE_SAME_MACHINE,
        cause=error.message,
        measured="another machine or other drives",
        expected=f"serial {job.target.serial} with root disk {job.target.disk}",
        remedy=f"{node.location}: {error.remedy}",
        serial=job.target.serial,
    )
    return StepOutcome(node.id, with_evidence([finding], evidence), evidence)


def _distrusted(job: InstallJob, cause: str, what_to_do: str) -> StepOutcome:
    evidence = job.status.evidence
    finding = Finding(
        check="install",
        verdict=Verdict.FAIL,
        code=Code.HOST_NOT_TRUSTED,
        cause=cause,
        measured=job.status.value.state.value,
        expected="a host that proves its identity",
        remedy=what_to_do,
        serial=job.target.serial,
        deterministic=False,
    )
    return StepOutcome(job.node.id, with_evidence([finding], evidence), evidence)


def failed(job: InstallJob, why: str, bmc: BmcState) -> StepOutcome:
    """Return the outcome of an install that failed, with the BMC's report."""
    silent = bmc.error is not None and not job.unreachable
    power = job.status.value.failure is FailureKind.POWER
    evidence = job.status.evidence + bmc.evidence
    reached = f"installed, but SSH fails: {job.unreachable}" if job.unreachable else why
    finding = Finding(
        check="install",
        verdict=Verdict.FAIL,
        code=Code.INSTALL_FAILED,
        subject="bmc" if silent or power else "node",
        cause=f"{reached}; {bmc.summary}",
        measured=job.status.value.state.value,
        expected=InstallState.INSTALLED.value,
        remedy=remedy(job, bmc),
        serial=job.target.serial,
        deterministic=bool(job.attempts),
    )
    return StepOutcome(job.node.id, with_evidence([finding], evidence), evidence)


def login_refused(job: InstallJob, why: str, bmc: BmcState) -> StepOutcome:
    """Return the outcome of a machine with a BMC that rejects the site's login, which we have tried ourselves."""
    error = bmc.error or EdgeError("the BMC rejects the login")
    found = replace(bmc_unreadable(job.node, error), check="install", cause=f"{why}; {error.message}")
    evidence = job.status.evidence + bmc.evidence
    return StepOutcome(job.node.id, with_evidence([replace(found, serial=job.target.serial)], evidence), evidence)


def login_differs(job: InstallJob, why: str) -> StepOutcome:
    """Return the outcome of a machine that the installer cannot switch, since it has another login than the site."""
    finding = Finding(
        check="install",
        verdict=Verdict.FAIL,
        code=Code.BMC_LOGIN_REFUSED,
        subject="bmc",
        cause=why,
        remedy=f"BMC at {job.node.bmc} ({job.node.location}): {job.status.value.remedy}",
        serial=job.target.serial,
    )
    return StepOutcome(job.node.id, with_evidence([finding], job.status.evidence), job.status.evidence)


def not_ours(job: InstallJob, why: str) -> StepOutcome:
    """Return the outcome of a machine that is another one, or another owner's: nothing is done to it."""
    finding = Finding(
        check="install",
        verdict=Verdict.FAIL,
        code=Code.NOT_THE_SAME_MACHINE,
        cause=why,
        measured="another machine or owner",
        expected=f"serial {job.target.serial}, free or installed by clusterctl",
        remedy=f"{job.node.location}, {job.node.name}: {job.status.value.remedy}",
        serial=job.target.serial,
    )
    return StepOutcome(job.node.id, with_evidence([finding], job.status.evidence), job.status.evidence)


def needs_operator(job: InstallJob, why: str) -> StepOutcome:
    """Return the outcome of a machine that only an operator may bring on; nothing is known against it."""
    finding = Finding(
        check="install",
        verdict=Verdict.INCONCLUSIVE,
        code=Code.NEEDS_OPERATOR,
        cause=why,
        remedy=f"{job.node.name}: {job.status.value.remedy}, then run clusterctl install on it again",
        serial=job.target.serial,
    )
    return StepOutcome(job.node.id, with_evidence([finding], job.status.evidence), job.status.evidence)


def installer_unavailable(job: InstallJob, why: str, what_to_do: str) -> StepOutcome:
    """Return the outcome of a machine with an installer that cannot be used: nothing is known against the machine."""
    finding = Finding(
        check="install",
        verdict=Verdict.INCONCLUSIVE,
        code=Code.INSTALLER_UNAVAILABLE,
        subject="installer",
        cause=why,
        remedy=what_to_do,
        deterministic=False,
    )
    return StepOutcome(job.node.id, with_evidence([finding], job.status.evidence), job.status.evidence)


def remedy(job: InstallJob, bmc: BmcState) -> str:
    """Return where to look first: at a host that runs, at the BMC without which nothing can be installed, or at the
    machine.
    """
    where = job.node.location
    status = job.status.value
    if job.unreachable:
        return f"attach a console to {job.node.name} ({where}): check its network cable, address and sshd"
    if bmc.error is not None:
        return bmc_unreadable(job.node, bmc.error).remedy
    if status.remedy:
        return f"{job.node.name}: {status.remedy}"
    if status.failure is FailureKind.POWER:
        return (
            f"BMC at {job.node.bmc} ({where}) answers clusterctl, and not the installer: check the route from the "
            "installer's rack controller to it, and the power parameters there; reset the BMC"
        )
    if bmc.power is Power.OFF:
        return f"power {job.node.name} on at {where}; if it stays off, check its PSUs and cords"
    return (
        f"attach a console to {job.node.name} ({where}) and power-cycle it: if POST hangs, reseat what the code shown "
        "names (DIMM, GPU); if POST ends, check the boot order and the cable of its PXE port"
    )
