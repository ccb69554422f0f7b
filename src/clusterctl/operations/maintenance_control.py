"""Pausing and ending a plan: nodes that wait for the end of their jobs go back, a change that has begun ends first."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.maintenance.progress import Progress
from clusterctl.fleet.payloads.maintenance import PlanStage, Turn
from clusterctl.operations.context import SiteContext
from clusterctl.operations.maintain import claim_of
from clusterctl.operations.maintenance_rollout import let_go, moved
from clusterctl.operations.maintenance_status import ENDED, found
from clusterctl.operations.operation import Control, Effect, Outcome, Preview, Result
from clusterctl.operations.partners import MAINTAIN, PartnerLender
from clusterctl.operations.site_facts import require_scheduler
from clusterctl.steps.executor.lease import sole_claim

_VERBS = {PlanStage.PAUSED: "pause", PlanStage.STOPPED: "stop"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequest:
    """`final`: the plan is ended for good; else `maintain resume` goes on with it."""

    plan: str
    reason: str = ""
    final: bool = False

    @property
    def to(self) -> PlanStage:
        return PlanStage.STOPPED if self.final else PlanStage.PAUSED


def preview(context: SiteContext, request: StopRequest) -> Preview:
    """Return what becomes of the plan's nodes. Raises `UsageError` where the plan has ended or is paused already."""
    return _preview(_active(context, request), request)


def run(context: SiteContext, request: StopRequest, control: Control) -> Result:
    """Write the order for the plan's run; where no run is there to read it, give its nodes back here."""
    progress = _active(context, request)
    control.require(_preview(progress, request))
    context.journal.append([moved(request.plan, request.to, request.reason)])
    text = _given_back(context, request.plan)
    stage = found(context, request.plan)
    return Result(operation=f"{MAINTAIN} {_VERBS[request.to]}", outcomes=(Outcome(node=stage.name, text=text),))


def _active(context: SiteContext, request: StopRequest) -> Progress:
    progress = found(context, request.plan)
    if progress.stage in (*ENDED, request.to):
        remedy = f"clusterctl maintain status {request.plan} prints where each node stands"
        raise UsageError(f"the plan is {progress.stage.value}", where=request.plan, remedy=remedy)
    return progress


def _preview(progress: Progress, request: StopRequest) -> Preview:
    draining, changing = progress.with_turn(Turn.DRAINING), progress.with_turn(Turn.CHANGING)
    effects = [Effect(node=name, text="given back: its change has not begun") for name in draining]
    effects += [Effect(node=name, text="its change has begun: it ends first") for name in changing]
    rest = len(progress.names) - len(progress.with_turn(Turn.DONE, Turn.FAILED, Turn.SKIPPED)) - len(effects)
    effects.append(Effect(node="", text=f"{rest} more nodes are not touched"))
    question = f"{_VERBS[request.to].capitalize()} the plan {progress.name}?"
    shown = Preview(operation=f"{MAINTAIN} {_VERBS[request.to]}", question=question, effects=tuple(effects))
    return shown.of(request)


def _given_back(context: SiteContext, plan: str) -> str:
    """Give back the plan's nodes where no run of it goes on; return what happens, in one clause."""
    try:
        with sole_claim(context.journal, claim_of(plan), context.run), closing(context.adapters()) as adapters:
            scheduler = require_scheduler(context.site, adapters.scheduler)
            let_go(context.journal, PartnerLender(context, scheduler, f"{MAINTAIN}:{plan}"), found(context, plan))
    except UsageError as error:
        return f"its run ends once the changes that have begun are over ({error.message})"
    left = found(context, plan).with_turn(Turn.CHANGING)
    return f"stays in the middle of its change: {', '.join(left)}" if left else "its nodes are given back"
