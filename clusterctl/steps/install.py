"""install: an OS on the root disk, through whichever installer the site has. Looks first, acts second."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from clusterctl.fleet.errors import AuthenticationError, EdgeError, UnreachableError, UntrustedError
from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Finding, Observed, Verdict
from clusterctl.fleet.node import Verb
from clusterctl.fleet.state import NodeState
from clusterctl.ports import (
    BmcAddress,
    Bmcs,
    Deadline,
    HostAddress,
    Installer,
    InstallState,
    InstallStatus,
    InstallTarget,
    Ran,
    Shell,
)
from clusterctl.steps.install_job import PREPARE, RELEASE, START, Job
from clusterctl.steps.install_outcomes import another_os, foreign, installed, remedy
from clusterctl.steps.step import Acts, Outcome, with_evidence
from clusterctl.steps.witness import Witness

BMC_S = 20.0
TROUBLES = 5
"""So often in a row the installer may refuse or lose a request about a machine before that is the machine's failure."""
GREETING = ("cat", "/proc/sys/kernel/random/boot_id", "/etc/hostname")


@dataclass(frozen=True, slots=True)
class HostAccess:
    """How the installed host lets us in: made before the install, so that its first answer can be verified."""

    user: str
    authorized_key: str
    key_file: str
    host_key: Callable[[str], tuple[str, str]]
    """Node name → (private, public) host key; made once and kept."""


class Install:
    """Prepares, starts and watches installs; many nodes with one observing request a round."""

    verb = Verb.INSTALL
    minimum = 1
    linger_s = 1.0
    at_once = 16

    def __init__(
        self,
        installer: Installer,
        shell: Shell,
        bmcs: Bmcs,
        address_of: Callable[[str], BmcAddress],
        *,
        access: HostAccess,
        poll_s: float,
    ) -> None:
        self._installer = installer
        self._shell = shell
        self._witness = Witness(bmcs, address_of)
        self._address_of = address_of
        self._access = access
        self._poll_s = poll_s

    def run(self, nodes: Sequence[NodeState], acts: Acts, deadline: Deadline) -> Iterator[Outcome]:
        jobs = {}
        for node in nodes:
            target = self._target(node)
            if isinstance(target, Outcome):
                yield target
                continue
            if node.host_key != target.host_key_public:
                acts.note(node.id, Kind.HOST_KEY_PINNED, {"public": target.host_key_public})
            jobs[node.name] = Job(node, target, acts)
        while jobs:
            for name, outcome in self._round(jobs, deadline):
                del jobs[name]
                yield outcome
            if jobs and not self._wait(deadline):
                for job in jobs.values():
                    yield self._failed(job, "the installer did not finish in time", deadline)
                return

    def _wait(self, deadline: Deadline) -> bool:
        """False once the deadline has passed; raises when cancelled."""
        try:
            deadline.sleep(self._poll_s, "waiting for the installer")
        except UnreachableError:
            return False
        return True

    def _round(self, jobs: dict[str, Job], deadline: Deadline) -> list[tuple[str, Outcome]]:
        """One look at all machines, one act on each that waits for us; the outcomes of those that are done."""
        try:
            statuses = self._installer.observe([job.target for job in jobs.values()], deadline)
        except AuthenticationError:
            raise
        except EdgeError as error:
            return self._troubled(list(jobs.values()), error, deadline)
        done = []
        for name, job in jobs.items():
            try:
                outcome = self._advance(job, statuses[name], deadline)
            except EdgeError as error:
                done += self._troubled([job], error, deadline)
                continue
            if outcome is not None:
                done.append((name, outcome))
        return done

    def _troubled(self, jobs: Sequence[Job], error: EdgeError, deadline: Deadline) -> list[tuple[str, Outcome]]:
        """The installer is asked again, after a look at what it did: it may be busy, restarting, or have lost its
        answer. Only trouble that stays is a failure.
        """
        for job in jobs:
            job.troubles += 1
        return [(job.node.name, self._failed(job, str(error), deadline)) for job in jobs if job.troubles > TROUBLES]

    def _advance(self, job: Job, status: Observed[InstallStatus], deadline: Deadline) -> Outcome | None:
        job.look(status)
        match status.value.state:
            case InstallState.ABSENT:
                job.act(PREPARE, self._installer.prepare, deadline)
            case InstallState.READY:
                job.act(START, self._installer.start, deadline)
            case InstallState.INSTALLED if not job.ours:
                return foreign(job)
            case InstallState.INSTALLED:
                return self._confirm(job, deadline)
            case InstallState.FAILED if job.stale:
                job.act(RELEASE, self._installer.release, deadline)
            case InstallState.FAILED:
                return self._failed(job, status.value.detail or "the installer reports a failure", deadline)
            case _:
                pass
        return None

    def _confirm(self, job: Job, deadline: Deadline) -> Outcome | None:
        """Installed means: it answers over SSH, with the host key that we gave it. None while it still boots."""
        status = job.status
        if not status.value.addresses:
            return self._failed(job, "the installer names no address of the installed host", deadline)
        try:
            greeting = self._greet(job, deadline.within(BMC_S))
        except (UnreachableError, AuthenticationError) as error:
            job.unreachable = error.message  # sshd may be up before cloud-init has let us in
            return None
        except UntrustedError:
            return another_os(job)
        except EdgeError as error:
            return self._failed(job, f"installed, but not trusted: {error.message}", deadline)
        return installed(job, status.value.addresses[0], greeting.value.stdout, status.evidence + greeting.evidence)

    def _greet(self, job: Job, deadline: Deadline) -> Observed[Ran]:
        address, pinned = job.status.value.addresses[0], job.target.host_key_public
        host = HostAddress(job.node.name, address, self._access.user, pinned, self._access.key_file)
        return self._shell.run(host, GREETING, b"", deadline)

    def _boots_another(self, job: Job, deadline: Deadline) -> bool:
        """Whether an OS with another host key answers: why the installer never heard of the one that it wrote."""
        if not job.ours or job.unreachable or not job.status.value.addresses:
            return False
        try:
            self._greet(job, Deadline.after(BMC_S, deadline.cancelled))
        except UntrustedError:
            return True
        except EdgeError:
            return False  # nobody answers, or it is ours: the installer's word stands
        return False

    def _failed(self, job: Job, why: str, deadline: Deadline) -> Outcome:
        """The failure with what the BMC says beside it: is the machine on, and did it log anything?"""
        if self._boots_another(job, deadline):
            return another_os(job)
        testimony = self._witness.ask(job.node.name, deadline)
        mute = testimony.silence is not None and not job.unreachable
        words = testimony.words
        evidence = job.status.evidence + testimony.evidence
        state = job.status.value.state
        cause = f"{why}; {words}" if not job.unreachable else f"installed, but SSH fails: {job.unreachable}; {words}"
        finding = Finding(
            "install",
            Verdict.FAIL,
            subject="bmc" if mute else "node",
            cause=cause,
            measured=state.value,
            expected=InstallState.INSTALLED.value,
            remedy=remedy(job, testimony),
            serial=job.target.serial,
            deterministic=False,
        )
        return Outcome(job.node.id, with_evidence([finding], evidence), evidence)

    def _target(self, node: NodeState) -> InstallTarget | Outcome:
        """What to install, or why that cannot be said."""
        if not (node.serial and node.root_disk and node.macs):
            cause = "serial, root disk or network cards of the machine are unknown"
            finding = Finding(
                "install", Verdict.INCONCLUSIVE, cause=cause, remedy="run clusterctl discover on it again"
            )
            return Outcome(node.id, (finding,))
        private, public = self._access.host_key(node.name)
        return InstallTarget(
            name=node.name,
            serial=node.serial,
            macs=node.macs,
            bmc=self._address_of(node.name),
            root_disk=node.root_disk,
            authorized_key=self._access.authorized_key,
            user=self._access.user,
            host_key_private=private,
            host_key_public=public,
        )
