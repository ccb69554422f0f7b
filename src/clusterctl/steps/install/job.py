"""One machine on its way through the installer: what was seen of it; acts are intended before they are done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from clusterctl.fleet.acts import INSTALL_ACTS, Act, ActResult
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError, UsageError
from clusterctl.fleet.finding import Finding, Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.network.host_network import HostNetwork
from clusterctl.fleet.payloads.node import HostKeyPinned
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, InstallState, InstallStatus, InstallTarget, Milestone
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.power_login import LoginProver
from clusterctl.steps.executor.step import StepOutcome


def _installers_network(_node: NodeState) -> HostNetwork:
    return HostNetwork()


def _installers_address(_name: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class TargetNetworks:
    """The networks of the hosts. `network_of` raises `UsageError` where the port is unknown; `address_of` returns the
    host's own address by a node's name, empty where the installer decides.
    """

    network_of: Callable[[NodeState], HostNetwork] = _installers_network
    address_of: Callable[[str], str] = _installers_address


INSTALLERS_NETWORK = TargetNetworks()


def network_unknown(node: NodeState, error: UsageError) -> StepOutcome:
    """Return the outcome of a node that would come up unreachable: nothing is installed."""
    cause = f"its network cannot be planned: {error.message}"
    finding = Finding(
        check="install",
        verdict=Verdict.INCONCLUSIVE,
        code=Code.NOT_INSTALLABLE,
        cause=cause,
        remedy=error.remedy,
        deterministic=False,
    )
    return StepOutcome(node.id, (finding,))


_OF_EARLIER_RUNS = frozenset({InstallState.FAILED, InstallState.PREPARING, InstallState.INSTALLING})
_OVER = frozenset({InstallState.INSTALLED, InstallState.RELEASING, InstallState.ERASING})
"""States in which the act before has had its effect, or is no longer what the installer works on."""
BEGINS = {InstallState.ABSENT: Act.INSTALL_PREPARE, InstallState.READY: Act.INSTALL_START}
"""By the state in which a machine waits for us: the act that brings it on."""


class InstallJob:
    """One machine on its way through the installer.

    ours      an install was intended by us, now or before: what the installer finished may be ours to trust
    reinstall an operator wants it installed again, and that has not begun: what the installer finished is released
    stale     nothing was seen yet but what an earlier run began: where it has failed, or fails while we watch (its
              power was cut, for example), it is released and tried again, not reported
    away      why the installer cannot be asked about it; empty where it can
    opened    the installer's login was seen to open the BMC in this run, or there is none to try
    attempts  how often each act has failed: the machine came back to where it was
    """

    def __init__(self, node: NodeState, target: InstallTarget, intents: IntentLog) -> None:
        self.node = node
        self.target = target
        self.last: Observed[InstallStatus] | None = None
        self.unreachable = ""
        self.troubles = 0
        self.busy = 0
        self.away = ""
        self.stale = True
        self.opened = False
        self.ours = node.intent(Act.INSTALL_START) is not None
        self.reinstall = bool(node.reinstall)
        self.attempts: Counter[Act] = Counter()
        self._intents = intents
        self._pinned = node.host_key
        self._reported_at, self._reported = node.progress_at, node.progress
        self._unanswered = {open_act.act for open_act in node.open_acts} & INSTALL_ACTS
        self._tried = next((act for act in BEGINS.values() if act in self._unanswered), None)
        self._unsettled = self._tried is not None

    @property
    def status(self) -> Observed[InstallStatus]:
        return self.last or Observed(InstallStatus(InstallState.ABSENT))

    @property
    def host_key(self) -> str:
        """The only key that the installed host may hold: its own as the installer reports it, else the one that we gave
        it; empty while it is unknown.
        """
        status = self.status.value
        return status.host_key or ("" if status.makes_key else self.target.host_key_public)

    def look(self, status: Observed[InstallStatus]) -> None:
        """Take the installer's present status. It is also the result of an act with a lost answer of its own: that is
        written down before anything is intended again.
        """
        for act in sorted(self._unanswered):
            result = ActResult.UNKNOWN if act is Act.POWER_LOGIN else _result(status)
            self._intents.observed(self.node.id, act, _words(status), result)
        self._unanswered.clear()
        self.stale = self.stale and status.value.state in _OF_EARLIER_RUNS
        if self.last is None or status.value.state is not self.last.value.state:
            self.troubles = 0
        self.unreachable = ""
        self.last = status
        if status.value.state in _OVER or BEGINS.get(status.value.state, self._tried) is not self._tried:
            self._tried = None
        for milestone in self._news(status.value.milestones):
            self._intents.progress(self.node.id, milestone.at, milestone.text)

    def settles(self) -> bool:
        """Return whether one more look must show where the machine stays: a request with a lost answer, or that an
        earlier run began, may still be at work in the installer.
        """
        unsettled, self._unsettled = self._unsettled and self._tried is not None, False
        return unsettled

    def came_back(self) -> bool:
        """Return whether the machine is where it was before the last act, which has failed thereby. Count that."""
        if self._tried is None:
            return False
        self.failed(self._tried)
        return True

    def failed(self, act: Act) -> None:
        """Count a failed attempt."""
        self._tried = None
        self.attempts[act] += 1

    def prove_login(self, prover: LoginProver, deadline: Deadline) -> None:
        """Log in to the BMC with the installer's login, once in a run. Raises as `LoginProver.prove`."""
        if not self.opened:
            prover.prove(self.node.id, self.target, self._intents, deadline)
            self.opened = True

    def act(
        self, act: Act, call: Callable[[InstallTarget, Deadline], Observed[InstallStatus]], deadline: Deadline
    ) -> None:
        """Intend, do while the machine is ours, observe."""
        before = self.status.value.state
        self._intents.intend(self.node.id, act, self.target.serial)
        self._unanswered.add(act)
        self.ours = self.ours or act is Act.INSTALL_START
        self.reinstall = self.reinstall and act is not Act.INSTALL_START
        try:
            result = call(self.target, self._intents.fenced([self.node.id], deadline))
        except OutcomeUnknownError:
            self._tried, self._unsettled = act, True
            raise
        except EdgeError:
            self._tried = None
            raise
        self._tried = act if result.value.state is not before else None
        self.troubles += self._tried is None
        self.busy = 0
        self.last = result
        self.stale = False
        self._intents.observed(self.node.id, act, _words(result), _result(result))
        self._unanswered.discard(act)

    def announce(self, message: str) -> None:
        """Report what the operator should know meanwhile; it is no event of the machine."""
        self._intents.announce(self.node.id, message)

    def give_key(self, private: str, public: str) -> None:
        """Set the key that a host is to hold which does not make its own."""
        self.target = replace(self.target, host_key_private=private, host_key_public=public)

    def pin(self) -> None:
        """Write down the key that the host must hold, where it is known: before the host gets it, or is talked to."""
        if self.host_key not in ("", self._pinned):
            self._intents.note(self.node.id, HostKeyPinned(public=self.host_key))
            self._pinned = self.host_key

    def _news(self, milestones: Sequence[Milestone]) -> Iterator[Milestone]:
        """Yield those that no run has written down yet: later ones, and others of the same instant as the last."""
        for one in milestones:
            if self._reported_at is not None and (one.at < self._reported_at or (one.at, one.text) in self._of_then()):
                continue
            self._reported = (*self._reported, one.text) if one.at == self._reported_at else (one.text,)
            self._reported_at = one.at
            yield one

    def _of_then(self) -> set[tuple[object, str]]:
        return {(self._reported_at, words) for words in self._reported}


def _words(status: Observed[InstallStatus]) -> str:
    return f"{status.value.state.value} {status.value.detail}".strip()


def _result(status: Observed[InstallStatus]) -> ActResult:
    return ActResult.FAILED if status.value.state is InstallState.FAILED else ActResult.DONE
