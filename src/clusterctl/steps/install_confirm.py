"""Is what the installer calls installed ours, does it let us in, and did it go where it should?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clusterctl.fleet.errors import AuthenticationError, EdgeError, UnreachableError, UntrustedError
from clusterctl.fleet.finding import Observed, Verdict
from clusterctl.ports import Deadline, HostAddress, Ran, Shell
from clusterctl.steps.install_job import Job
from clusterctl.steps.install_outcomes import another_os, installed, unnamed, untold_key, untrusted
from clusterctl.steps.install_proof import DiskProver
from clusterctl.steps.step import Outcome

HOST_S = 20.0
"""Seconds for an installed host to answer its first question."""
GREETING = ("cat", "/proc/sys/kernel/random/boot_id", "/etc/hostname")


@dataclass(frozen=True, slots=True)
class HostAccess:
    """How the installed host lets us in: made before the install, so that its first answer can be verified."""

    user: str
    authorized_key: str
    key_file: str
    host_key: Callable[[str], tuple[str, str]]
    """Node name → (private, public) host key; made once and kept."""
    new_host_key: Callable[[str], tuple[str, str]]
    """The same, made anew and kept instead."""


@dataclass(frozen=True, slots=True)
class Confirmer:
    """Talks to hosts that are said to be installed. Nobody is trusted on first use: without a key to hold it to, a host
    is not talked to.
    """

    shell: Shell
    access: HostAccess

    def confirm(self, job: Job, deadline: Deadline) -> Outcome | None:
        """Installed means: it answers over SSH with the one key that it may hold. None while it still boots."""
        status = job.status
        if not status.value.addresses:
            return unnamed(job)
        if not job.host_key:
            return untold_key(job)
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

    def boots_another(self, job: Job, deadline: Deadline) -> bool:
        """Whether an OS with another host key answers: why the installer never heard of the one that it wrote."""
        if not job.ours or job.unreachable or not job.status.value.addresses or not job.host_key:
            return False
        try:
            self._greet(job, Deadline.after(HOST_S, deadline.cancelled))
        except UntrustedError:
            return True
        except EdgeError:
            return False  # nobody answers, or it is ours: the installer's word stands
        return False

    def _proven(self, job: Job, outcome: Outcome, deadline: Deadline) -> Outcome:
        """With what the host says of its drives; one of another name is not asked."""
        if outcome.findings[0].verdict is not Verdict.PASS:
            return outcome
        where = f"{job.node.location}, {job.node.name}"
        proof = DiskProver(self.shell).prove(self._host(job), job.target, job.status.value, where, deadline)
        findings, evidence = (*outcome.findings, *proof.findings), (*outcome.evidence, *proof.evidence)
        return Outcome(outcome.node, findings, evidence, outcome.facts)

    def _greet(self, job: Job, deadline: Deadline) -> Observed[Ran]:
        return self.shell.run(self._host(job), GREETING, b"", deadline)

    def _host(self, job: Job) -> HostAddress:
        address = job.status.value.addresses[0]
        return HostAddress(job.node.name, address, self.access.user, job.host_key, self.access.key_file)
