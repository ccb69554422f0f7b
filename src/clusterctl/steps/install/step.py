"""install: an OS on the root disk, through whichever installer the site has. Looks first, acts second."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from clusterctl.fleet.acts import Act
from clusterctl.fleet.decisions.reinstall import check_same
from clusterctl.fleet.errors import (
    AuthenticationError,
    EdgeError,
    InstallerBusyError,
    InstallerUnavailableError,
    RootDiskUnclearError,
    UsageError,
)
from clusterctl.fleet.finding import Finding, Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Serial, Step
from clusterctl.fleet.state import NodeState
from clusterctl.ports import (
    BmcAddress,
    Bmcs,
    Deadline,
    FailureKind,
    Installer,
    InstallError,
    InstallState,
    InstallStatus,
    InstallTarget,
    Shell,
)
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.power_login import LoginProver
from clusterctl.steps.executor.reachability import BmcProbe, BmcState
from clusterctl.steps.executor.step import StepOutcome
from clusterctl.steps.install.confirm import HostAccess, HostVerifier
from clusterctl.steps.install.findings import (
    another_os,
    failed,
    foreign,
    installer_unavailable,
    login_differs,
    login_refused,
    needs_operator,
    not_ours,
    root_unclear,
    stranger,
)
from clusterctl.steps.install.job import BEGINS, InstallJob, TargetNetworks, network_unknown
from clusterctl.steps.install.rounds import AWAY_S, Handlers, Rounds, Times

BMC_S = 300.0
"""Seconds for a BMC to report its inventory."""
ATTEMPTS = 3
"""So often an act may fail with a machine that comes back to where it was. Each may be a log-in of MAAS at its BMC."""
TROUBLES = 5
"""So often in a row the installer may refuse or lose a request about a machine before that is the machine's failure."""
BUSY_LOOKS = 40
"""So many looks an installer may be too busy for a machine, or lack its rack controller: ten minutes by default."""


OrderCall = Callable[[InstallTarget, Deadline], Observed[InstallStatus]]


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
        self,
        services: InstallServices,
        access: HostAccess,
        networks: TargetNetworks,
        *,
        poll_s: float,
        away_s: float = AWAY_S,
    ) -> None:
        self._installer = services.installer
        self._bmcs = services.bmcs
        self._address_of = services.address_of
        self._logins = LoginProver(services.installer, services.bmcs)
        self._probe = BmcProbe(services.bmcs, services.address_of)
        self._access = access
        self._verifier = HostVerifier(services.shell, access)
        self._times = Times(poll_s, away_s)
        self._networks = networks

    def run(self, nodes: Sequence[NodeState], intents: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        jobs = {}
        for node in nodes:
            target = self._target(node)
            if isinstance(target, StepOutcome):
                yield target
            else:
                jobs[node.name] = InstallJob(node, target, intents)
        handlers = Handlers(self._advance, self._trouble, self._ended)
        yield from Rounds(self._installer, handlers, jobs, deadline, self._times).outcomes()

    # --- one machine ------------------------------------------------------------------------------------------------

    def _advance(self, job: InstallJob, status: Observed[InstallStatus], deadline: Deadline) -> StepOutcome | None:
        """Bring the machine one step on. Return its outcome; None where it goes on."""
        try:
            return self._next(job, status, deadline)
        except InstallError as error:
            return self._unsuccessful(job, error, deadline)
        except InstallerUnavailableError:
            return None  # the next look finds it away, and waits
        except InstallerBusyError as error:
            job.busy += 1
            return installer_unavailable(job, error.message, error.remedy) if job.busy > BUSY_LOOKS else None
        except RootDiskUnclearError as error:
            return root_unclear(job, error.message, error.remedy)
        except EdgeError as error:
            return self._trouble(job, error, deadline)

    def _next(self, job: InstallJob, status: Observed[InstallStatus], deadline: Deadline) -> StepOutcome | None:
        job.look(status)
        match status.value.state:
            case InstallState.ABSENT | InstallState.READY:
                return self._begin(job, deadline)
            case InstallState.INSTALLED if not job.ours:
                return foreign(job)
            case InstallState.INSTALLED if job.reinstall:
                return self._give_back(job, deadline)
            case InstallState.INSTALLED:
                return self._verifier.confirm(job, deadline)
            case InstallState.FAILED if job.stale and not _final(status.value):
                self._order(job, Act.INSTALL_RELEASE, self._installer.release, deadline)
            case InstallState.FAILED:
                return self._report(job, status.value.detail or "the installer reports a failure", deadline)
            case _:
                pass
        return None

    def _begin(self, job: InstallJob, deadline: Deadline) -> StepOutcome | None:
        """Do what brings the machine on from where it waits, unless it has come back there too often."""
        act = BEGINS[job.status.value.state]
        if job.settles():
            return None
        if job.came_back() and (outcome := self._too_often(job, act, job.status.value.detail, deadline)):
            return outcome
        if act is Act.INSTALL_START:
            job.pin()
        call = self._installer.prepare if act is Act.INSTALL_PREPARE else self._installer.start
        self._order(job, act, call, deadline)
        if job.troubles > TROUBLES:
            return self._report(job, f"it stays where it is: {job.status.value.detail}", deadline)
        return None

    def _unsuccessful(self, job: InstallJob, error: InstallError, deadline: Deadline) -> StepOutcome | None:
        """Handle an act that failed, with the reason that the installer gives."""
        now = job.status
        status = InstallStatus(now.value.state, error.message, failure=error.failure, remedy=error.remedy)
        job.last = Observed(status, now.evidence)
        act = BEGINS.get(now.value.state)
        if error.failure.final or act is None:
            return self._report(job, error.message, deadline)
        job.failed(act)
        return self._too_often(job, act, error.message, deadline)

    def _too_often(self, job: InstallJob, act: Act, why: str, deadline: Deadline) -> StepOutcome | None:
        """Return the outcome where no other attempt is to be made.

        Where the installer could not use the BMC, we log in ourselves before it does again: a wrong password is tried
        once, and the account is not locked.
        """
        kind = job.status.value.failure
        if kind is FailureKind.POWER and job.attempts[act] == 1:
            bmc = self._probe.read(job.node.name, deadline)
            if isinstance(bmc.error, AuthenticationError):
                return login_refused(job, why, bmc)
        if job.attempts[act] < ATTEMPTS and not _final(job.status.value):
            return None
        return self._report(job, f"{job.attempts[act]} attempts failed; the last: {why}", deadline)

    def _trouble(self, job: InstallJob, error: EdgeError, deadline: Deadline) -> StepOutcome | None:
        """Ask the installer again, after a look at what it did: it may have lost its answer. Only trouble that
        stays is a failure.
        """
        job.troubles += 1
        if job.troubles <= TROUBLES:
            return None
        job.last = Observed(replace(job.status.value, remedy=error.remedy), job.status.evidence)
        return self._report(job, error.message, deadline)

    def _give_back(self, job: InstallJob, deadline: Deadline) -> StepOutcome | None:
        """Release the machine that gets a new OS. Its identity is proven right before.

        The new OS gets a key of its own, which differs from the old one's.
        """
        limit = deadline.within(BMC_S)
        with self._bmcs.open(job.target.bmc, limit) as bmc:
            seen = bmc.inventory(limit)
        try:
            check_same(job.node, seen.value)
        except EdgeError as error:
            return stranger(job, error, seen.evidence)
        job.give_key(*self._access.new_host_key(job.node.name))
        self._order(job, Act.INSTALL_RELEASE, self._installer.release, deadline)
        return None

    def _order(self, job: InstallJob, act: Act, call: OrderCall, deadline: Deadline) -> None:
        """Have the installer act. Before the first act its login must open the BMC: it may try a wrong one often."""
        job.prove_login(self._logins, deadline)
        job.act(act, call, deadline)

    # --- outcomes ---------------------------------------------------------------------------------------------------

    def _ended(self, job: InstallJob, deadline: Deadline) -> StepOutcome:
        """Return the outcome of a machine that has used up its time."""
        if job.away:
            return installer_unavailable(
                job, job.away, "start the installer's service, then run clusterctl install again"
            )
        return self._report(job, "the installer did not finish in time", deadline)

    def _report(self, job: InstallJob, why: str, deadline: Deadline) -> StepOutcome:
        """Return the outcome of a failure, by the part that the installer reports it for."""
        if job.status.value.decide:
            return root_unclear(job, why, job.status.value.decide)
        match job.status.value.failure:
            case FailureKind.FOREIGN:
                return not_ours(job, why)
            case FailureKind.OPERATOR:
                return needs_operator(job, why)
            case FailureKind.LOGIN:
                return login_differs(job, why)
            case _:
                return self._failed(job, why, deadline)

    def _failed(self, job: InstallJob, why: str, deadline: Deadline) -> StepOutcome:
        """Return the failure with the BMC's report: is the machine on, and did it log anything?"""
        if self._verifier.boots_another(job, deadline):
            return another_os(job)
        bmc: BmcState = self._probe.read(job.node.name, deadline)
        if isinstance(bmc.error, AuthenticationError) and not job.unreachable:
            return login_refused(job, why, bmc)
        return failed(job, why, bmc)

    def _target(self, node: NodeState) -> InstallTarget | StepOutcome:
        """Return what to install, or why that is unknown."""
        if not (node.serial and (node.root_disk or node.root_rule) and node.macs):
            cause = "serial, root disk or network cards of the machine are unknown"
            finding = Finding(
                check="install",
                verdict=Verdict.INCONCLUSIVE,
                code=Code.NOT_INSTALLABLE,
                cause=cause,
                remedy="run clusterctl discover on it again",
            )
            return StepOutcome(node.id, (finding,))
        try:
            network = self._networks.network_of(node)
        except UsageError as error:
            return network_unknown(node, error)
        private, public = self._access.host_key(node.name)
        disk, wwn = _root_disk(node)
        return InstallTarget(
            name=node.name,
            serial=node.serial,
            macs=node.macs,
            bmc=self._address_of(node.name),
            root_disk=disk,
            root_wwn=wwn,
            root_rule=node.root_rule,
            authorized_key=self._access.authorized_key,
            user=self._access.user,
            host_key_private=private,
            host_key_public=public,
            address=self._networks.address_of(node.name),
            network=network,
        )


def _root_disk(node: NodeState) -> tuple[Serial, str]:
    """Return serial and WWN of the disk that gets the OS; both empty where a rule chooses it on the host."""
    if node.root_rule or node.root_disk is None:
        return Serial(""), ""
    drives = (node.inventory.drives if node.inventory else None) or ()
    return node.root_disk, next((one.wwn for one in drives if one.serial == node.root_disk), "")


def _final(status: InstallStatus) -> bool:
    return status.failure is not None and status.failure.final
