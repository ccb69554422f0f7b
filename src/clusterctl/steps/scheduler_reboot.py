"""Reboots of nodes in service through their scheduler: drained, rebooted, checked, and back at work.

One loop follows all nodes: the scheduler is asked once a turn. A node waits for the end of its jobs without a permit;
it holds one from the order of its reboot until it answers again. Each act is intended in the journal before the node
is drained. A run after a killed one finds by the time of the last boot whether the node has rebooted since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from clusterctl.fleet.acts import Act, ActResult, SchedulerRebootDetails, intent_of
from clusterctl.fleet.errors import ClaimLostError, ClusterctlError, EdgeError
from clusterctl.fleet.node import Serial
from clusterctl.fleet.payloads.node import ActIntended
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline
from clusterctl.ports.scheduler import PREFIX, NodeBoot, Reboots, Scheduler, Use
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.permits import NodePermits

ACT = Act.SCHEDULER_REBOOT
POLL_S = 10.0
BOOT_S = 3600.0
"""Seconds for a reboot and the checks after it. Slurm itself gives up after ResumeTimeout (1800 s as exported)."""
DRAINED = f"{PREFIX}reboot:"
GIVE_BACK_S = 120.0
JITTER = timedelta(seconds=5)
LENT = (f"{PREFIX}maintain:", f"{PREFIX}nightly:", f"{PREFIX}revalidate:")
"""Reasons of ours under which another run works on the node."""

Checks = Callable[[Sequence[str]], Mapping[str, str]]
"""Checks nodes; returns for each why it may not serve, empty where it may."""


@dataclass(frozen=True, slots=True)
class RebootedNode:
    """What became of one node. `error`: why it does not serve again."""

    name: str
    text: str
    error: ClusterctlError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootServices:
    """What the reboots act through. `drain_s`: how long a node's jobs may still run; `poll_s` between two looks."""

    scheduler: Scheduler
    reboots: Reboots
    permits: NodePermits
    checks: Checks
    drain_s: float
    poll_s: float = POLL_S


@dataclass(slots=True, kw_only=True)
class _Turn:
    """One node. `began`, `ordered`: seconds of the deadline's timer; `trouble`: what it last waited for."""

    state: NodeState
    serial: Serial
    details: SchedulerRebootDetails | None = None
    began: float = 0.0
    ordered: float | None = None
    drained_here: bool = False
    trouble: str = ""


@dataclass(slots=True)
class SchedulerReboots:
    """Reboots nodes of one run. `reason` is the operator's, `run` names the drain."""

    services: RebootServices
    acts: IntentLog
    reason: str
    run: str
    _left: dict[str, _Turn] = field(default_factory=dict, init=False)

    def reboot(self, nodes: Sequence[tuple[NodeState, Serial]], deadline: Deadline) -> Iterator[RebootedNode]:
        """Yield each node's result as soon as it is known. Nodes that wait for jobs are given back at the end.

        Raises `EdgeError` where the scheduler does not answer at all: nothing was changed. Later it may be restarted.
        """
        self.services.reboots.nodes(deadline)
        began = deadline.timer.now()
        self._left = {state.name: _Turn(state=state, serial=serial, began=began) for state, serial in nodes}
        try:
            with self.acts.lease.kept(self.services.permits.keep):
                while self._left:
                    self.services.permits.keep()
                    fenced = self.acts.fenced([turn.state.id for turn in self._left.values()], deadline)
                    yield from self._turn(fenced)
                    if self._left:
                        deadline.timer.wait(deadline.cancelled, self.services.poll_s)
                        deadline.check_cancelled("nodes reboot; run the command again to go on")
        finally:
            self.services.permits.close()
            self._give_back(deadline)

    def _turn(self, deadline: Deadline) -> Iterator[RebootedNode]:
        seen = self._look(deadline)
        if seen is not None:
            for name, turn in list(self._left.items()):
                if turn.ordered is None:
                    yield from self._ended(turn, partial(self._prepare, turn, seen.get(name), deadline))
            yield from self._order(seen, deadline)
            yield from self._returned(seen, deadline)
        for turn in list(self._left.values()):
            yield from self._ended(turn, partial(self._require_in_time, turn, deadline))

    def _look(self, deadline: Deadline) -> Mapping[str, NodeBoot] | None:
        """Return the nodes; None where the scheduler does not answer, as while it is restarted."""
        try:
            seen = self.services.reboots.nodes(deadline)
        except EdgeError as error:
            for turn in self._left.values():
                turn.trouble = f"the scheduler does not answer: {error.message}"
            return None
        for name, turn in self._left.items():
            turn.trouble = f"the scheduler reports {seen[name].state if name in seen else 'no such node'}"
        return seen

    def _ended(self, turn: _Turn, act: Callable[[], str]) -> Iterator[RebootedNode]:
        """Do one act for a node; yield its result where that ends its turn. The others go on whatever it raises."""
        try:
            try:
                if text := act():
                    yield self._done(turn, text)
            except EdgeError as error:
                yield self._failed(turn, error)
        except ClaimLostError as error:
            self._left.pop(turn.state.name, None)
            yield RebootedNode(turn.state.name, "", error)

    def _prepare(self, turn: _Turn, seen: NodeBoot | None, deadline: Deadline) -> str:
        """Drain a node that may have work; recognise what a killed run had begun."""
        name = turn.state.name
        if seen is None:
            raise EdgeError("the scheduler does not know it", where=name)
        if turn.details is None:
            turn.details = _begun(turn.state)
        if turn.details is not None and (seen.pending or _rebooted(turn.details, seen)):
            turn.ordered = deadline.timer.now()
            return ""
        booted = _require_free(name, seen)
        if turn.details is None or seen.reason not in ("", turn.details.drain):
            drain = seen.reason or f"{DRAINED}{self.run}"
            turn.details = SchedulerRebootDetails(booted=booted.isoformat(), drain=drain)
            intent = ActIntended(act=ACT, target=turn.serial, reason=self.reason, details=turn.details)
            self.acts.note(turn.state.id, intent)
        turn.drained_here = turn.details.drain.startswith(DRAINED)
        if not seen.reason:
            refused = self.services.scheduler.drain([name], turn.details.drain, deadline).refused
            if name in refused:
                raise EdgeError(f"it cannot be drained: {refused[name]}", where=name)
        return ""

    def _order(self, seen: Mapping[str, NodeBoot], deadline: Deadline) -> Iterator[RebootedNode]:
        """Order the reboot of nodes without work, as many as there are permits for."""
        ready = {turn.state.id: turn for name, turn in self._left.items() if _is_ready(turn, seen.get(name))}
        for node in self.services.permits.begin(list(ready)):
            turn = ready[node]
            turn.ordered = deadline.timer.now()
            yield from self._ended(turn, partial(self._send, turn.state.name, deadline))
        for node in self.services.permits.newly_waiting():
            self.acts.announce(node, self.services.permits.waiting)

    def _send(self, name: str, deadline: Deadline) -> str:
        self.services.reboots.reboot(name, deadline)
        return ""

    def _returned(self, seen: Mapping[str, NodeBoot], deadline: Deadline) -> Iterator[RebootedNode]:
        """Check the nodes that are back; resume those that may serve. The others are checked again until too late."""
        back = [turn for name, turn in self._left.items() if _is_back(turn, seen.get(name))]
        for turn in back:
            self.services.permits.leave(turn.state.id)
        out = [turn.state.name for turn in back if seen[turn.state.name].use is Use.OUT]
        troubles = self.services.checks(out) if out else {}
        for turn in back:
            if trouble := troubles.get(turn.state.name, ""):
                turn.trouble = trouble
            else:
                yield from self._ended(turn, partial(self._resume, turn, deadline))

    def _resume(self, turn: _Turn, deadline: Deadline) -> str:
        """Let the node serve again, unless another keeps it out by now."""
        name = turn.state.name
        now = self.services.reboots.nodes(deadline).get(name)
        if now is None or turn.details is None:
            raise EdgeError("the scheduler does not know it any more", where=name)
        if now.use is not Use.OUT:
            return "rebooted, and it serves"
        if not now.reason.startswith(turn.details.drain):
            kept = now.reason or now.state
            raise EdgeError(f"rebooted; it stays out of work, another keeps it out: {kept}", where=name)
        self.services.reboots.resume(name, deadline)
        return "rebooted, checked, and it serves again"

    def _require_in_time(self, turn: _Turn, deadline: Deadline) -> str:
        """Raise `EdgeError` for a node whose jobs, reboot or checks took too long."""
        now = deadline.timer.now()
        if turn.ordered is None and now - turn.began > self.services.drain_s:
            minutes = self.services.drain_s / 60
            raise EdgeError(f"it was not free within {minutes:g} min: {turn.trouble}", where=turn.state.name)
        if turn.ordered is not None and now - turn.ordered > BOOT_S:
            raise EdgeError(f"it stays out of work after its reboot: {turn.trouble}", where=turn.state.name)
        return ""

    def _done(self, turn: _Turn, text: str) -> RebootedNode:
        self._leave(turn)
        self.acts.observed(turn.state.id, ACT, text)
        return RebootedNode(turn.state.name, text)

    def _failed(self, turn: _Turn, error: EdgeError) -> RebootedNode:
        """Record the failure of a node whose turn was intended; give it back where nothing was ordered."""
        self._leave(turn)
        if turn.details is not None:
            self.acts.observed(turn.state.id, ACT, error.message, ActResult.FAILED)
        return RebootedNode(turn.state.name, "", error)

    def _leave(self, turn: _Turn) -> None:
        self.services.permits.leave(turn.state.id)
        del self._left[turn.state.name]
        if turn.drained_here and turn.ordered is None:
            self.services.scheduler.give_back([turn.state.name], Deadline.after(GIVE_BACK_S))

    def _give_back(self, deadline: Deadline) -> None:
        """Give back what this run drained and had not rebooted yet; a node whose reboot goes on stays as it is."""
        waiting = [name for name, turn in self._left.items() if turn.drained_here and turn.ordered is None]
        for name in waiting:
            self.acts.observed(self._left[name].state.id, ACT, "stopped before its reboot", ActResult.FAILED)
        if waiting:
            self.services.scheduler.give_back(waiting, Deadline.after(GIVE_BACK_S, timer=deadline.timer))


def _begun(node: NodeState) -> SchedulerRebootDetails | None:
    """Return what a run that was killed had intended."""
    before = intent_of(node.intents, ACT)
    if before is None or not before.open or not isinstance(before.details, SchedulerRebootDetails):
        return None
    return before.details


def _require_free(name: str, seen: NodeBoot) -> datetime:
    """Return the time of the last boot. Raise `EdgeError` for a node that is out for another, or not known enough."""
    if seen.pending:
        raise EdgeError(f"a reboot is ordered that is not ours: {seen.state}", where=name)
    if seen.reason.startswith(LENT):
        raise EdgeError(f"another run of clusterctl works on it: {seen.reason}", where=name)
    if seen.reason and not seen.ours:
        raise EdgeError(f"another keeps it out of work: {seen.reason}", where=name)
    if seen.booted is None or seen.use is Use.UNKNOWN or not seen.answers or (seen.down and not seen.reason):
        raise EdgeError(f"the scheduler reports {seen.state}: its daemon could not reboot it", where=name)
    return seen.booted


def _is_ready(turn: _Turn, seen: NodeBoot | None) -> bool:
    """Return whether the node has no work, and none can begin: it was so at the last look."""
    return turn.ordered is None and turn.details is not None and seen is not None and seen.use is Use.OUT and seen.ours


def _is_back(turn: _Turn, seen: NodeBoot | None) -> bool:
    """Return whether the reboot is over, and the node answers."""
    if turn.ordered is None or turn.details is None or seen is None or seen.pending or not seen.answers:
        return False
    return _rebooted(turn.details, seen)


def _rebooted(details: SchedulerRebootDetails, seen: NodeBoot) -> bool:
    """Return whether the last boot is another one. Its time is computed each time, to a second or two."""
    return seen.booted is not None and seen.booted > datetime.fromisoformat(details.booted) + JITTER
