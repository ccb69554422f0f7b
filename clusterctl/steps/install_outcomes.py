"""What an install ends in, in findings and remedies. Pure."""

from __future__ import annotations

from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Evidence, Finding, Verdict
from clusterctl.steps.install_job import Job
from clusterctl.steps.step import Outcome, node_event, with_evidence


def installed(job: Job, address: str, greeting: str, evidence: tuple[Evidence, ...]) -> Outcome:
    boot_id, _, hostname = greeting.strip().partition("\n")
    right = hostname.strip() == job.node.name
    finding = Finding(
        "install",
        Verdict.PASS if right else Verdict.FAIL,
        cause=f"answers at {address} with its pinned host key, boot {boot_id}",
        measured=hostname.strip(),
        expected=job.node.name,
        remedy="" if right else f"the host at {address} is not {job.node.name}: check its DHCP lease",
        serial=job.target.serial,
    )
    facts = (node_event(job.node.id, Kind.NODE_ADDRESSED, address=address),)
    return Outcome(job.node.id, with_evidence([finding], evidence), evidence, facts)


def foreign(job: Job) -> Outcome:
    """Installed, but not by us: somebody's machine is never wiped and never trusted."""
    finding = Finding(
        "install",
        Verdict.FAIL,
        cause="the installer already has an OS on this machine that clusterctl did not put there",
        measured=job.status.value.detail,
        remedy=f"if nobody uses {job.node.name}, release it in the installer, then run again",
        serial=job.target.serial,
    )
    return Outcome(job.node.id, with_evidence([finding], job.status.evidence), job.status.evidence)


def remedy(job: Job, words: str) -> str:
    where = job.node.location
    if job.unreachable:
        return f"attach a console to {job.node.name} ({where}): check its network cable, address and sshd"
    if "power is off" in words:
        return f"power {job.node.name} on at {where}; if it stays off, check its PSUs and cords"
    return (
        f"attach a console to {job.node.name} ({where}) and power-cycle it: if POST hangs, reseat what the code shown "
        "names (DIMM, GPU); if POST ends, check the boot order and the cable of its PXE port"
    )
