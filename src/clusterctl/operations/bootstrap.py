"""Steps over nodes: the whole way from BMC address to gold, or a part of it."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.errors import CancelledError, UsageError
from clusterctl.fleet.event import Event, Kind, NewEvent, Stream
from clusterctl.fleet.gate import Decision
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.payloads import runs
from clusterctl.fleet.payloads.hardware import FabricFault, FabricLinksJudged
from clusterctl.fleet.payloads.node import StageAdvanced, StepStarted
from clusterctl.fleet.selectors import matching
from clusterctl.fleet.state import NodeState, NodeSummary, summarise
from clusterctl.operations import accounts, notify
from clusterctl.operations.adapters import Access, Adapters
from clusterctl.operations.compose import StepFactory
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control, Effect, Preview
from clusterctl.operations.partners import unpublished_partners
from clusterctl.operations.plan import PlannedNode, planned
from clusterctl.operations.site_facts import never_installed
from clusterctl.operations.trust import notices
from clusterctl.ports import Claims, Journal
from clusterctl.steps.executor.pipeline import Observer, PipelineProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Which steps, in their order, over which nodes.

    limit      names and patterns; empty: all of the site
    partners   idle gold nodes that others are measured with
    read_only  discover reads, and switches no machine on
    """

    steps: tuple[Step, ...]
    limit: tuple[str, ...] = ()
    partners: tuple[str, ...] = ()
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProgress:
    """One thing that happened to one node. `decision` is None when a step begins and while it runs; `text` is what the
    machine reports meanwhile.
    """

    node: NodeSummary
    step: Step
    decision: Decision | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStopped:
    """A step begins with no more nodes."""

    step: Step
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """The nodes that the run has claimed. `expected_s`: seconds that a step took for a node before, where known."""

    nodes: tuple[NodeSummary, ...]
    steps: tuple[Step, ...]
    expected_s: Mapping[Step, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Where the nodes stand after the run.

    skipped  nodes that were left alone, with the reason: another run or an operator holds them, or a step was stopped
    faults   of the fabric, that concern no single node
    links    the health of the fabric's links, where the step `cable` read it in this run
    """

    nodes: tuple[NodeSummary, ...]
    last: Step
    skipped: Mapping[str, str]
    faults: tuple[FabricFault, ...] = ()
    links: FabricLinksJudged | None = None
    cancelled: bool = False

    @property
    def exit_code(self) -> int:
        """0: all nodes arrived; 1: some are stopped or were left alone; 130: cancelled."""
        if self.cancelled:
            return CancelledError.exit_code
        return 0 if not self.skipped and all(arrived(node, self.last) for node in self.nodes) else 1


def preview(context: SiteContext, request: RunRequest) -> Preview:
    """Return what the steps would do with each selected node. Raises `UsageError` for unfit partners."""
    nodes = _select(context, request)
    _partners(context, request, nodes)
    return _preview(context, request, nodes)


def _preview(context: SiteContext, request: RunRequest, nodes: Sequence[NodeSummary]) -> Preview:
    now = CLOCK.now()
    overwritten = [
        node
        for node in nodes
        if Step.INSTALL in request.steps
        and node.stage in (Stage.SEEN, Stage.DISCOVERED)
        and not node.held(now)
        and not never_installed(context.site, node)
    ]
    question = f"Run {', '.join(step.value for step in request.steps)} on {len(nodes)} nodes?"
    if overwritten:
        question = (
            f"Switch {len(overwritten)} machines on and off and overwrite their root disks "
            f"({overwritten[0].name} … {overwritten[-1].name}; clusterctl plan shows each)?"
        )
    return Preview(
        operation=request.steps[-1].value if len(request.steps) == 1 else "bootstrap",
        question=question,
        effects=tuple(_effect(planned(context.site, node)) for node in nodes),
        warnings=notices(context.site),
    ).of(request)


def _effect(plan: PlannedNode) -> Effect:
    return Effect(node=plan.node.name, text="; ".join(filter(None, (plan.steps, plan.destroys))))


def run(context: SiteContext, request: RunRequest, control: Control) -> RunResult:
    """Run the steps until each node has gone as far as it can. Events: `RunStarted`, `StepProgress`, `StepStopped`.

    At its end the incidents are brought up to date, and messages about them are sent.
    """
    result = _run(context, request, control)
    if not result.cancelled:
        notify.after_run(context)
    return result


def _run(context: SiteContext, request: RunRequest, control: Control) -> RunResult:
    context = context.reporting(control.waiting)
    nodes = _select(context, request)
    partners = _partners(context, request, nodes)
    control.require(_preview(context, request, nodes))
    context.describe()
    chosen = {node.name for node in nodes}
    nodes = context.summaries(chosen)
    with closing(context.adapters(Access.READ if request.read_only else Access.FULL)) as adapters:
        idle = unpublished_partners(context.journal, adapters.pool, nodes, request.steps)
        partners += [node for node in idle if node not in partners]
        refused = run_steps(context, adapters, nodes, partners, request, control)
    now = CLOCK.now()
    after = tuple(context.summaries(chosen))
    held = {node.name: str(node.hold) for node in after if node.held(now)}
    return RunResult(
        nodes=after,
        last=request.steps[-1],
        skipped=refused | held,
        faults=context.faults() if Step.CABLE in request.steps else (),
        links=links_judged(context),
        cancelled=control.cancelled.is_set(),
    )


def links_judged(context: SiteContext) -> FabricLinksJudged | None:
    """Return the last judgement of the fabric's links of this run; None where it read no counters."""
    events = context.journal.latest(Stream.FABRIC, Kind.FABRIC_LINKS_JUDGED)
    mine = [event.payload for event in events if event.run == context.run]
    return next((one for one in mine if isinstance(one, FabricLinksJudged)), None)


def run_steps(
    context: SiteContext,
    adapters: Adapters,
    nodes: Sequence[NodeSummary],
    partners: Sequence[NodeSummary],
    request: RunRequest,
    control: Control,
) -> dict[str, str]:
    """Claim the nodes that can move, run the steps and release them; return the nodes left alone, with the reason."""
    steps = request.steps
    names = {node.id: node.name for node in (*nodes, *partners)}
    moving = [node for node in nodes if node.next_step in steps]
    with _claimed(context, [*moving, *partners]) as claims:
        if not request.read_only:
            accounts.finish(context, adapters, claims.granted.values(), control)
        fit = [partner for partner in _granted(context, partners, claims) if partner.in_pool(CLOCK.now())]
        factory = StepFactory(context, adapters, control.cancelled, fit, read_only=request.read_only)
        context.journal.append([NewEvent(Stream.RUN, context.run, runs.RunStarted(steps=tuple(steps)))])
        claimed = tuple(node for node in nodes if node.id not in claims.refused)
        control.on_event(RunStarted(nodes=claimed, steps=steps, expected_s=expected_seconds(context.journal)))
        pipeline = factory.pipeline(steps, _observer(control))
        lost = pipeline.run(_granted(context, nodes, claims), claims.granted)
        context.journal.append([NewEvent(Stream.RUN, context.run, runs.RunFinished())])
        factory.publish()
    return {names[node]: holder for node, holder in {**claims.refused, **lost}.items()}


def _granted(context: SiteContext, nodes: Sequence[NodeSummary], claims: Claims) -> list[NodeState]:
    """Return those of the nodes that the run has claimed."""
    return [context.journal.state(node.id) for node in nodes if node.id in claims.granted]


def _observer(control: Control) -> Observer:
    """Return what turns the pipeline's progress into events."""

    def on_progress(progress: PipelineProgress) -> None:
        node = summarise(progress.state)
        control.on_event(StepProgress(node=node, step=progress.step, decision=progress.decision, text=progress.text))

    def on_stopped(step: Step, reason: str) -> None:
        control.on_event(StepStopped(step=step, reason=reason))

    return Observer(on_progress, on_stopped)


def arrived(node: NodeSummary, last: Step) -> bool:
    """Return whether the node stands where `last` leads, or beyond, and is not stopped."""
    if node.stopped_at is not None:
        return False
    return node.next_step is None or list(Step).index(node.next_step) > list(Step).index(last)


def _select(context: SiteContext, request: RunRequest) -> list[NodeSummary]:
    """Return the site's matching nodes, retired ones never; for a single step only those that stand before it."""
    fleet = context.listed()
    wanted = matching((node.name for node in fleet), request.limit)
    nodes = [node for node in fleet if node.name in wanted and node.stage is not Stage.RETIRED]
    return nodes if len(request.steps) > 1 else [node for node in nodes if node.next_step in request.steps]


def _partners(context: SiteContext, request: RunRequest, nodes: Sequence[NodeSummary]) -> list[NodeSummary]:
    """Return the named partners. Raises `UsageError` for one that is not gold: it is not known to be healthy."""
    if not request.partners:
        return []
    now = CLOCK.now()
    known = {node.name: node for node in context.nodes()}
    for name in request.partners:
        why = _unfit(known.get(name), now)
        if why:
            remedy = "name an idle gold node: clusterctl nodes -l stage=gold"
            raise UsageError(f"{name} cannot be a partner: {why}", where="--partner", remedy=remedy)
    moving = {node.name for node in nodes if node.next_step}
    return [known[name] for name in request.partners if name not in moving]


def _unfit(node: NodeSummary | None, now: datetime) -> str:
    """Return why a node cannot be a partner; empty where it can."""
    if node is None:
        return "there is no such node"
    if node.in_pool(now):
        return ""
    return str(node.hold) if node.held(now) else node.stage.value


@contextmanager
def _claimed(context: SiteContext, nodes: Sequence[NodeSummary]) -> Iterator[Claims]:
    """Claim those of the nodes that no other run holds."""
    claims = context.journal.claim([node.id for node in nodes], context.run)
    try:
        yield claims
    finally:
        context.journal.release(claims.granted.values())


SAMPLE = 8
"""So many nodes are read: their histories hold reports, which take milliseconds each."""


def expected_seconds(journal: Journal) -> Mapping[Step, float]:
    """Return the median seconds of each step that passed, over a sample of gold nodes; steps without one are absent."""
    gold = sorted(
        (node for node in journal.summaries() if node.stage is Stage.GOLD),
        key=lambda node: node.since.timestamp() if node.since else 0.0,
    )
    found: dict[Step, list[float]] = defaultdict(list)
    for node in gold[-SAMPLE:]:
        for step, seconds in step_durations(journal.history(Stream.NODE, node.id)):
            found[step].append(seconds)
    return {step: statistics.median(seconds) for step, seconds in found.items()}


def step_durations(events: Iterable[Event]) -> Iterator[tuple[Step, float]]:
    """Yield the seconds from each start of a step to the advance that it led to, of one node's events."""
    started: dict[Step, Event] = {}
    for event in events:
        match event.payload:
            case StepStarted(step=step):
                started[step] = event
            case StageAdvanced(to=to):
                for step in [step for step in started if step.leads_to is to]:
                    yield step, (event.at - started.pop(step).at).total_seconds()
            case _:
                pass
