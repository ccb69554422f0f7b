"""The plans of rolling changes: which there are, how far each wave of one is, and where its nodes stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from clusterctl.fleet.maintenance.progress import NodeTurn, Progress
from clusterctl.fleet.payloads.maintenance import Turn
from clusterctl.operations.context import SiteContext
from clusterctl.operations.maintenance_status import ENDED, every, found
from clusterctl_web.actions import PLANS
from clusterctl_web.guard import actor_of
from clusterctl_web.rendering import Renderer

MOST = 500
"""Nodes of one plan, and plans, on a page."""
_ORDER = (Turn.FAILED, Turn.CHANGING, Turn.DRAINING, Turn.SKIPPED, Turn.DONE)
"""Of the nodes on the page: what needs an operator comes first. Nodes that wait are only counted."""
_CLASSES = {Turn.FAILED: "fail", Turn.SKIPPED: "warn", Turn.DONE: "pass"}


@dataclass(frozen=True, slots=True)
class WaveRow:
    """One wave: how many of its nodes stand where, and how many have ended."""

    label: str
    nodes: int
    ended: int
    counts: Mapping[Turn, int]


@dataclass(frozen=True, slots=True)
class NodeRow:
    name: str
    wave: str
    turn: NodeTurn
    css: str


@dataclass(frozen=True, slots=True)
class PlanPages:
    """The list of plans, and each of them."""

    context: SiteContext
    renderer: Renderer

    def routes(self) -> list[Route]:
        return [Route("/plans", self.list), Route("/plans/{name}", self.show)]

    async def list(self, request: Request) -> Response:
        """Show all plans, the newest first."""
        plans = (await run_in_threadpool(every, self.context))[::-1]
        return self.renderer.html(request, "plans.html.j2", plans=plans[:MOST], count=len(plans), ended=ENDED)

    async def show(self, request: Request) -> Response:
        """Show the waves and nodes of one plan."""
        plan = await run_in_threadpool(found, self.context, request.path_params["name"])
        nodes = list(node_rows(plan))
        return self.renderer.html(
            request,
            "plan.html.j2",
            plan=plan,
            waves=list(wave_rows(plan)),
            nodes=nodes[:MOST],
            count=len(nodes),
            turns=_ORDER,
            actions=PLANS.offered(actor_of(request)) if plan.stage not in ENDED else (),
        )


def wave_rows(plan: Progress) -> Iterator[WaveRow]:
    """Yield the waves in their order."""
    for label, wave in zip(plan.labels, plan.waves, strict=True):
        counts = Counter(plan.of(name).turn for name in wave)
        ended = counts[Turn.DONE] + counts[Turn.FAILED] + counts[Turn.SKIPPED]
        yield WaveRow(label, len(wave), ended, counts)


def node_rows(plan: Progress) -> Iterator[NodeRow]:
    """Yield the nodes that have had a turn: those that failed first."""
    waves = {name: label for label, wave in zip(plan.labels, plan.waves, strict=True) for name in wave}
    for turn in _ORDER:
        for name in plan.with_turn(turn):
            yield NodeRow(name, waves[name], plan.of(name), _CLASSES.get(turn, ""))
