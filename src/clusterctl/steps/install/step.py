"""install: an OS on the root disk, through whichever installer the site has. Looks first, acts second."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from clusterctl.fleet.acts import Act
from clusterctl.fleet.decisions.reinstall import check_same
from clusterctl.fleet.errors import AuthenticationError, EdgeError, RootDiskUnclearError, UnreachableError, UsageError
from clusterctl.fleet.finding import Finding, Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Serial, Step
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, Bmcs, Deadline, Installer, InstallState, InstallStatus, InstallTarget, Shell
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.reachability import BmcProbe
from clusterctl.steps.executor.step import Outcome, with_evidence
from clusterctl.steps.install.confirm import HostAccess, HostVerifier
from clusterctl.steps.install.findings import another_os, foreign, remedy, root_unclear, stranger
from clusterctl.steps.install.job import Job, TargetNetworks, network_unknown

__all__ = ["HostAccess", "Install"]

BMC_S = 300.0
"""Seconds for a BMC to tell its inventory."""
TROUBLES = 5
"""So often in a row the installer may refuse or lose a request about a machine before that is the machine's failure."""
AT_ONCE = 16
"""So many hosts are talked to at the same time: one that is slow to answer holds nobody up."""

Done = list[tuple[str, Outcome]]


@dataclass(frozen=True, slots=True)
class InstallServices:
    """What install works with."""

    installer: Installer
    shell: Shell
    bmcs: Bmcs
    address_of: Callable[[str], BmcAddress]


class Install:
    """Prepares, starts and watches installs; many nodes with one observing request a round."""

    step = Step.INSTALL
    minimum = 1
    linger_s = 1.0
    at_once = 16

    def __init__(
        self, services: InstallServices, access: HostAccess, networks: TargetNetworks, *, poll_s: float
    ) -> None:
        self._installer = services.installer
        self._bmcs = services.bmcs
        self._address_of = services.address_of
        self._probe = BmcProbe(services.bmcs, services.address_of)
        self._access = access
        self._verifier = HostVerifier(services.shell, access)
        self._poll_s = poll_s
        self._networks = networks

    def run(self, nodes: Sequence[NodeState], intents: IntentLog, deadline: Deadline) -> Iterator[Outcome]:
        jobs = {}
        for node in nodes:
            target = self._target(node)
            if isinstance(target, Outcome):
                yield target
            else:
                jobs[node.name] = Job(node, target, intents)
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

    def _round(self, jobs: dict[str, Job], deadline: Deadline) -> Done:
        """One look at all machines, one act on each that waits for us; the outcomes of those that are done.

        Acts are done one after another, so that never more than one request is on its way when we are stopped.
        """
        try:
            statuses = self._installer.observe([job.target for job in jobs.values()], deadline)
        except AuthenticationError:
            raise
        except EdgeError as error:
            return self._troubled(list(jobs.values()), error, deadline)

        def one(job: Job) -> Done:
            return self._one(job, statuses[job.node.name], deadline)

        up = [job for job in jobs.values() if _boots(job, statuses[job.node.name].value)]
        done = [over for job in jobs.values() if job not in up for over in one(job)]
        if up:
            with ThreadPoolExecutor(min(AT_ONCE, len(up)), "install") as pool:
                done += [over for part in pool.map(one, up) for over in part]
        return done

    def _one(self, job: Job, status: Observed[InstallStatus], deadline: Deadline) -> Done:
        try:
            outcome = self._advance(job, status, deadline)
        except RootDiskUnclearError as error:
            outcome = root_unclear(job, error.message, error.remedy)
        except EdgeError as error:
            return self._troubled([job], error, deadline)
        return [] if outcome is None else [(job.node.name, outcome)]

    def _troubled(self, jobs: Sequence[Job], error: EdgeError, deadline: Deadline) -> Done:
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
                job.act(Act.INSTALL_PREPARE, self._installer.prepare, deadline)
            case InstallState.READY:
                job.pin()
                job.act(Act.INSTALL_START, self._installer.start, deadline)
            case InstallState.INSTALLED if not job.ours:
                return foreign(job)
            case InstallState.INSTALLED if job.anew:
                return self._give_back(job, deadline)
            case InstallState.INSTALLED:
                return self._verifier.confirm(job, deadline)
            case InstallState.FAILED if job.stale:
                job.act(Act.INSTALL_RELEASE, self._installer.release, deadline)
            case InstallState.FAILED if status.value.decide:
                return root_unclear(job, status.value.detail, status.value.decide)
            case InstallState.FAILED:
                return self._failed(job, status.value.detail or "the installer reports a failure", deadline)
            case _:
                pass
        return None

    def _give_back(self, job: Job, deadline: Deadline) -> Outcome | None:
        """The OS that goes is somebody's work until a moment ago: which machine it is, is proven right before that.
        The new OS gets a key of its own: the old one is told apart by its.
        """
        patience = deadline.within(BMC_S)
        with self._bmcs.open(job.target.bmc, patience) as bmc:
            seen = bmc.inventory(patience)
        try:
            check_same(job.node, seen.value)
        except EdgeError as error:
            return stranger(job, error, seen.evidence)
        job.give_key(*self._access.new_host_key(job.node.name))
        job.act(Act.INSTALL_RELEASE, self._installer.release, deadline)
        return None

    def _failed(self, job: Job, why: str, deadline: Deadline) -> Outcome:
        """The failure with what the BMC says beside it: is the machine on, and did it log anything?"""
        if self._verifier.boots_another(job, deadline):
            return another_os(job)
        bmc = self._probe.read(job.node.name, deadline)
        silent = bmc.error is not None and not job.unreachable
        words = bmc.summary
        evidence = job.status.evidence + bmc.evidence
        state = job.status.value.state
        cause = f"{why}; {words}" if not job.unreachable else f"installed, but SSH fails: {job.unreachable}; {words}"
        finding = Finding(
            check="install",
            verdict=Verdict.FAIL,
            code=Code.INSTALL_FAILED,
            subject="bmc" if silent else "node",
            cause=cause,
            measured=state.value,
            expected=InstallState.INSTALLED.value,
            remedy=remedy(job, bmc),
            serial=job.target.serial,
            deterministic=False,
        )
        return Outcome(job.node.id, with_evidence([finding], evidence), evidence)

    def _target(self, node: NodeState) -> InstallTarget | Outcome:
        """What to install, or why that cannot be said."""
        if not (node.serial and (node.root_disk or node.root_rule) and node.macs):
            cause = "serial, root disk or network cards of the machine are unknown"
            finding = Finding(
                check="install",
                verdict=Verdict.INCONCLUSIVE,
                code=Code.NOT_INSTALLABLE,
                cause=cause,
                remedy="run clusterctl discover on it again",
            )
            return Outcome(node.id, (finding,))
        try:
            network = self._networks.network_of(node)
        except UsageError as error:
            return network_unknown(node, error)
        private, public = self._access.host_key(node.name)
        drives = (node.inventory.drives if node.inventory else None) or ()
        return InstallTarget(
            name=node.name,
            serial=node.serial,
            macs=node.macs,
            bmc=self._address_of(node.name),
            root_disk=Serial("") if node.root_rule else node.root_disk or Serial(""),
            root_wwn="" if node.root_rule else next((one.wwn for one in drives if one.serial == node.root_disk), ""),
            root_rule=node.root_rule,
            authorized_key=self._access.authorized_key,
            user=self._access.user,
            host_key_private=private,
            host_key_public=public,
            address=self._networks.address_of(node.name),
            network=network,
        )


def _boots(job: Job, status: InstallStatus) -> bool:
    """Whether all that is left is to talk to its host."""
    return status.state is InstallState.INSTALLED and job.ours and not job.anew
