"""Rolling changes of the pool by a plan: begin, go on after a stop, take back. `maintenance_control` stops them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site import contents
from clusterctl.edges.site.maintenance_plan import EXPLAINED, read_plan
from clusterctl.edges.site.roles import wanted
from clusterctl.fleet.decisions.maintain import require_fit
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.maintenance.forecast import Forecast, forecast, measured
from clusterctl.fleet.maintenance.plan import GroupedBy, MaintenancePlan, PlanNode, Waves, unplaced, wave_label, waves
from clusterctl.fleet.maintenance.progress import Progress
from clusterctl.fleet.node import NodeId, Stage, Step
from clusterctl.fleet.payloads.maintenance import MaintenanceOrdered, PlanStage, Turn
from clusterctl.fleet.selectors import matching
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl.operations import notify
from clusterctl.operations.bootstrap import SAMPLE
from clusterctl.operations.context import SiteContext
from clusterctl.operations.maintenance_change import STEPS, NodeChanger, changed_site, suite_of
from clusterctl.operations.maintenance_rollout import Rollout, moved
from clusterctl.operations.maintenance_status import found, read
from clusterctl.operations.operation import Control, Effect, Failure, Outcome, Preview, Result
from clusterctl.operations.partners import MAINTAIN, PartnerLender
from clusterctl.operations.selection import selected_names
from clusterctl.operations.serial import from_data, to_data
from clusterctl.operations.site_facts import require_scheduler
from clusterctl.operations.trust import notices
from clusterctl.steps.executor.lease import sole_claim

NAME = "maintain"
_TOUCHED = (Turn.CHANGING, Turn.DONE, Turn.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainRequest:
    """What is to be done with a plan.

    back     the change of the plan is taken back on the nodes that had it
    resumes  when the plan was paused or halted, as seen by the operator who goes on with it. A plan that stopped at
             another time is left alone: an order that is repeated overrides no later stop
    """

    plan: MaintenancePlan
    back: bool = False
    resumes: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """`left`: the nodes whose turn is still to come. `before`: the plan as it stands; None where it is new."""

    waves: Waves
    left: frozenset[str]
    skipped: Mapping[str, str]
    before: Progress | None


def claim_of(plan: str) -> NodeId:
    """Return the subject that one run of the plan claims."""
    return NodeId(f"{NAME}:{plan}")


def plan_of(context: SiteContext, file: Path) -> MaintenancePlan:
    """Return the plan of a file. Raises `UsageError` with every problem, each at its file, line and field."""
    return read_plan(context.site, file)


def known_plan(context: SiteContext, name: str) -> MaintenancePlan:
    """Return a plan that has begun, by its name. Raises `UsageError` for another one."""
    return from_data(MaintenancePlan, found(context, name).plan)


def resuming(context: SiteContext, name: str) -> MaintainRequest:
    """Return the order to go on with a plan as it stands. Raises `UsageError` for one that never began."""
    progress = found(context, name)
    return MaintainRequest(plan=known_plan(context, name), back=progress.back, resumes=progress.moved)


def preview(context: SiteContext, request: MaintainRequest) -> Preview:
    """Return the waves, and what is changed on each node. Raises `UsageError` where the plan cannot go on."""
    _check(context, request)
    return _preview(context, request, _prepare(context, request))


def _newest_gold(context: SiteContext) -> list[NodeSummary]:
    """Return the nodes that became gold last: the times of their steps are those of the present hardware."""
    gold = [node for node in context.journal.summaries() if node.stage is Stage.GOLD]
    return sorted(gold, key=lambda node: node.since.timestamp() if node.since else 0.0)[-SAMPLE:]


def expected(context: SiteContext, request: MaintainRequest) -> Forecast:
    """Return how long the waves take once the jobs of their nodes have ended, by the steps that were measured."""
    prepared = _prepare(context, request)
    left = tuple(tuple(name for name in wave if name in prepared.left) for wave in prepared.waves)
    histories = (context.journal.history(Stream.NODE, node.id) for node in _newest_gold(context))
    batch = {step: size for step in Step if (size := asdict(context.site.settings.batch).get(step.value))}
    seconds = measured(histories, suite_of(context.site, request.plan))
    found = forecast(tuple(wave for wave in left if wave), STEPS, seconds, batch)
    return found if request.back else replace(found, without=request.plan.change.of_machines)


def run(context: SiteContext, request: MaintainRequest, control: Control) -> Result:
    """Change the nodes wave by wave; interrupted, the same request goes on where it was. Returns each node's outcome.

    At its end the incidents are brought up to date, and messages about them are sent.
    """
    context = context.reporting(control.waiting)
    _check(context, request)
    control.require(_preview(context, request, _prepare(context, request)))
    context.describe()
    plan = request.plan
    with sole_claim(context.journal, claim_of(plan.name), context.run, control.cancelled.set) as claim:
        progress = _begun(context, request)
        site = changed_site(context.site, plan, progress.names, back=request.back)
        changing = replace(context, site=site)
        with closing(changing.adapters()) as adapters:
            scheduler = require_scheduler(site, adapters.scheduler)
            lender = PartnerLender(changing, scheduler, f"{MAINTAIN}:{plan.name}")
            changer = NodeChanger(context=changing, adapters=adapters, plan=plan, control=control, back=request.back)
            rollout = Rollout(context=changing, lender=lender, changer=changer, plan=plan, control=control, claim=claim)
            progress = rollout.run()
    if not control.cancelled.is_set():
        notify.after_run(context)
    return result(progress, control)


def _begun(context: SiteContext, request: MaintainRequest) -> Progress:
    """Write that the plan begins or goes on, where the journal does not have it; return how far it came."""
    prepared = _prepare(context, request)
    if prepared.before is None or prepared.before.back is not request.back:
        order = MaintenanceOrdered(
            plan=to_data(request.plan), waves=prepared.waves, skipped=prepared.skipped, back=request.back
        )
        context.journal.append([NewEvent(Stream.MAINTENANCE, request.plan.name, order)])
    elif prepared.before.stage is not PlanStage.RUNNING:
        context.journal.append([moved(request.plan.name, PlanStage.RUNNING)])
    return found(context, request.plan.name)


def _check(context: SiteContext, request: MaintainRequest) -> None:
    """Raise `UsageError` where the site has no scheduler, or not what the plan needs."""
    with closing(context.adapters()) as adapters:
        require_scheduler(context.site, adapters.scheduler)
    contents.suite(changed_site(context.site, request.plan, ("*",), back=request.back))
    if request.back:
        _require_way_back(context, request.plan)


def _require_way_back(context: SiteContext, plan: MaintenancePlan) -> None:
    if not plan.change.by_roles:
        remedy = "write the earlier state into the baseline, and a plan that applies it"
        raise UsageError("BIOS settings and firmware have no roll back", where=plan.name, remedy=remedy)
    if plan.back_variables or _differing(context, plan):
        return
    if plan.change.roles:
        text = f"no role takes back what it made by itself: {', '.join(plan.change.roles)}"
        remedy = "write a plan whose variables undo it, where the roles have such variables"
        raise UsageError(text, where=plan.name, remedy=remedy)
    remedy = "put the earlier values back into it, or write a plan with them"
    raise UsageError("site.yml has the plan's values: there is nothing to go back to", where=plan.name, remedy=remedy)


def _differing(context: SiteContext, plan: MaintenancePlan) -> list[str]:
    """Return the plan's variables that the site's file has with another value, or does not have."""
    site = wanted(context.site).variables
    return [name for name, value in plan.change.variables.items() if name not in site or site[name] != value]


def _prepare(context: SiteContext, request: MaintainRequest) -> _Prepared:
    before = read(context.journal, request.plan.name)
    if before is None:
        if request.back:
            found(context, request.plan.name)
        return _new(context, request.plan)
    _require_same(before, request)
    if request.back and not before.back:
        return _way_back(context, before)
    left = frozenset(name for name in before.names if before.of(name).turn is not Turn.DONE)
    return _Prepared(waves=before.waves, left=left, skipped=before.skipped, before=before)


def _require_same(before: Progress, request: MaintainRequest) -> None:
    """Raise `UsageError` where the plan cannot go on: it has other content, was ended, or was taken back."""
    name = request.plan.name
    if to_data(request.plan) != before.plan:
        remedy = "give the changed plan another name, or clusterctl maintain resume goes on with the one that began"
        raise UsageError("a plan of this name began with another content", where=name, remedy=remedy)
    if before.back and not request.back:
        remedy = f"clusterctl maintain rollback {name} goes on with that; or give the plan another name"
        raise UsageError("it is being rolled back, or was", where=name, remedy=remedy)
    if before.back is not request.back:
        return
    if before.stage is PlanStage.STOPPED:
        raise UsageError("it was stopped for good", where=name, remedy="give the plan another name")
    if before.stage in (PlanStage.PAUSED, PlanStage.HALTED) and request.resumes != before.moved:
        remedy = f"look at clusterctl maintain status {name}; clusterctl maintain resume {name} goes on with it"
        raise UsageError(
            f"it is {before.stage.value}: {before.reason or 'no reason was given'}", where=name, remedy=remedy
        )


def _new(context: SiteContext, plan: MaintenancePlan) -> _Prepared:
    """Return the waves of a plan that begins: of gold nodes of the site."""
    listed = {node.name for node in context.site.nodes}
    chosen = _chosen(context, plan)
    states = context.states(node.name for node in context.nodes() if node.name in chosen & listed)
    skipped = dict(_unfit(states, plan.name))
    racks = {node.name: node.rack for node in context.site.nodes}
    able = [
        PlanNode(name=node.name, rack=racks[node.name], sku=node.sku) for node in states if node.name not in skipped
    ]
    _require_waves(plan, able, skipped)
    made = waves(plan.waves, able)
    return _Prepared(waves=made, left=frozenset(name for wave in made for name in wave), skipped=skipped, before=None)


def _require_waves(plan: MaintenancePlan, able: Sequence[PlanNode], skipped: Mapping[str, str]) -> None:
    """Raise `UsageError` where no node can be changed, or where waves by rack or pod leave a node out."""
    if not able:
        why = next((f"; {name}: {text}" for name, text in skipped.items()), "")
        remedy = f"clusterctl nodes prints where the nodes stand; the plan takes gold ones ({EXPLAINED})"
        raise UsageError(f"no node of the plan can be changed{why}", where=f"plan {plan.name}", remedy=remedy)
    if lost := unplaced(plan.waves, able):
        by = plan.waves.by.value
        remedy = {
            GroupedBy.RACK: "write its rack into the site's sheet, or make the waves by nodes",
            GroupedBy.POD: "add its rack to waves.pods, or choose the plan's nodes by nodes or select",
        }[plan.waves.by]
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        raise UsageError(f"{lost[0]}{more}: in no {by} of the plan", where=f"plan {plan.name}: waves", remedy=remedy)


def _chosen(context: SiteContext, plan: MaintenancePlan) -> set[str]:
    """Return the nodes that the plan names. Raises `UsageError` where a pattern or a selector matches none."""
    names = [node.name for node in context.nodes()]
    where = f"plan {plan.name}: nodes"
    matched = matching(names, plan.nodes, where) if plan.nodes else set(names)
    if not plan.select:
        return matched
    try:
        return matched & set(selected_names(context, plan.nodes, plan.select, where))
    except UsageError as error:
        raise UsageError(error.message, where=f"plan {plan.name}: select", remedy=error.remedy) from error


def _way_back(context: SiteContext, before: Progress) -> _Prepared:
    """Return the waves of a roll back: the nodes whose change had begun, in the plan's own waves."""
    touched = set(before.with_turn(*_TOUCHED))
    skipped = dict(_unfit(context.states(name for name in before.names if name in touched), before.name))
    kept_waves = (tuple(name for name in wave if name in touched - skipped.keys()) for wave in before.waves)
    made = tuple(wave for wave in kept_waves if wave)
    return _Prepared(waves=made, left=frozenset(n for wave in made for n in wave), skipped=skipped, before=before)


def _unfit(states: list[NodeState], plan: str) -> Iterator[tuple[str, str]]:
    """Yield the nodes that may not be changed, with the reason."""
    for node in states:
        try:
            require_fit(node, plan, CLOCK.now())
        except UsageError as error:
            yield node.name, f"{error.message}; {error.remedy}"


def _preview(context: SiteContext, request: MaintainRequest, prepared: _Prepared) -> Preview:
    what = _way_back_text(context, request.plan) if request.back else str(request.plan.change)
    effects = tuple(
        Effect(node=name, text=f"{wave_label(request.plan.waves.canary, number)}: {what}")
        for number, wave in enumerate(prepared.waves)
        for name in wave
        if name in prepared.left
    )
    if not effects:
        effects = (Effect(node="", text="no node is left to be changed"),)
    question = f"Change {len(prepared.left)} nodes, each once its jobs have ended?"
    warnings = (*notices(context.site), *_not_in_site(context, request))
    shown = Preview(operation=NAME, question=question, effects=effects, skipped=prepared.skipped, warnings=warnings)
    return shown.of(request)


def _way_back_text(context: SiteContext, plan: MaintenancePlan) -> str:
    """Return what a roll back sets, in one clause."""
    values = {name: value for name, value in wanted(context.site).variables.items() if name in plan.change.variables}
    values |= plan.back_variables
    parts = [
        f"{name} = {values[name]}" if name in values else f"{name} as its role has it" for name in plan.change.variables
    ]
    return f"roll back to {', '.join(parts)}"


def _not_in_site(context: SiteContext, request: MaintainRequest) -> Iterator[str]:
    """Yield the variables of the plan that the site's file has with another value, and roles that stay."""
    plan, site = request.plan, wanted(context.site).variables
    if request.back:
        if plan.change.roles and not plan.back_variables:
            yield f"what these roles made stays on the nodes: {', '.join(plan.change.roles)}"
        return
    for name in _differing(context, plan):
        has = f"has {name} = {site[name]}" if name in site else f"does not have {name}"
        yield f"site.yml {has}: write the plan's value into it once all is changed; configure applies site.yml"


def result(progress: Progress, control: Control) -> Result:
    """Return the outcome of each node that had its turn."""
    outcomes = []
    for name in progress.names:
        turn = progress.of(name)
        failure = Failure(kind=NAME, message=turn.text, where=name) if turn.turn is Turn.FAILED else None
        if turn.turn in (Turn.DONE, Turn.FAILED, Turn.CHANGING):
            outcomes.append(Outcome(node=name, text="" if failure else _text(turn.turn, progress), failure=failure))
    skipped = {name: progress.of(name).text for name in progress.with_turn(Turn.SKIPPED)}
    return Result(
        operation=NAME,
        outcomes=tuple(outcomes),
        skipped={**progress.skipped, **skipped},
        stopped="" if progress.stage is PlanStage.DONE else progress.line(),
        cancelled=control.cancelled.is_set(),
    )


def _text(turn: Turn, progress: Progress) -> str:
    if turn is Turn.CHANGING:
        return "its change has begun and is not over"
    return "rolled back, gold again" if progress.back else "changed, gold again"
