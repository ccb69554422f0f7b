"""Boot machines once from an image that their BMCs fetch, and eject it afterwards.

The first machine of a site is installed this way: no host serves a network boot yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.bmc.boot import check_uri
from clusterctl.fleet.decisions.decision import checked_reason
from clusterctl.fleet.decisions.permissions import PowerOrder, power_permitted
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.state import NodeState
from clusterctl.operations.compose import reboot_cap
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Failure, Outcome
from clusterctl.operations.runner import NodeOperation, Work
from clusterctl.operations.site_facts import stagger
from clusterctl.ports import Deadline
from clusterctl.steps.boot_image import SELF_TEST_S, ImageBooter, ImageBootResult
from clusterctl.steps.executor.intent_log import IntentLog

BOOT_S = 1200.0 + SELF_TEST_S
"""Seconds for one machine: the power cycle as in `operations.power`, five minutes for drive and override, self-test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerBootRequest:
    """`nodes`: names and patterns. `uri`: an image by http(s), without a login.

    eject     only eject the image, and switch nothing
    at_most   how many may be power-cycled at once; None: the site's budget
    screen_s  seconds from the end of the self-test until the machine's screen is read
    """

    nodes: tuple[str, ...]
    uri: str
    reason: str
    eject: bool = False
    at_most: int | None = None
    screen_s: float = 60.0


def _order(request: PowerBootRequest) -> PowerOrder:
    """Return the power order that the request follows: an eject switches nothing off."""
    return PowerOrder.ON if request.eject else PowerOrder.CYCLE


def _question(request: PowerBootRequest, names: Sequence[str]) -> str:
    machines = f"{len(names)} machines ({', '.join(names)})"
    if request.eject:
        return f"Eject {request.uri} from the virtual drives of {machines}?"
    return f"Power-cycle {machines}, by force where the OS does not shut down, and boot once from {request.uri}?"


def _check(context: SiteContext, request: PowerBootRequest, nodes: Sequence[NodeState]) -> None:
    """Raise `UsageError` for a wrong image, the first node that may not be booted, and more nodes than the budget."""
    checked_reason(request.reason)
    check_uri(request.uri)
    for node in nodes:
        power_permitted(node, _order(request), CLOCK.now())
    most = context.site.settings.power.at_most if request.at_most is None else request.at_most
    if not request.eject and len(nodes) > most:
        raise UsageError(
            f"{len(nodes)} machines would go off at once; the budget is {most}",
            where="--at-most",
            remedy=f"name fewer nodes, or pass --at-most {len(nodes)}",
        )


def _act(work: Work[PowerBootRequest]) -> Iterator[Outcome]:
    context, request = work.context, work.request
    permits = [(node, power_permitted(node, _order(request), CLOCK.now())) for node in work.nodes]
    spread = stagger(context.site)
    turns = -(
        -len(permits) // min(spread.at_once, context.site.settings.fabric.reboots)
    )  # each turn lasts as long as its slowest machine
    deadline = Deadline.after((BOOT_S + request.screen_s) * turns + spread.shortest(len(permits)), work.cancelled)
    workers = context.site.settings.batch.discover
    booter = ImageBooter(
        work.adapters.bmcs,
        context.site.bmc_address,
        context.journal,
        workers,
        request.screen_s,
        reboot_cap(context).taken,
    )
    act = booter.eject if request.eject else booter.boot
    acts = IntentLog(context.journal, work.claims)
    return map(_outcome, act(permits, request.uri, checked_reason(request.reason), acts, deadline))


def _outcome(item: ImageBootResult) -> Outcome:
    text = {True: "booted from the image", False: "ejected", None: "unknown"}[item.inserted]
    if item.screen is not None:
        text += f"; what it showed: clusterctl nodes {item.name} --evidence {item.screen[:12]}"
    return Outcome(
        node=item.name,
        text=text,
        failure=Failure.of(item.error) if item.error else None,
        values={"inserted": item.inserted, "screen": item.screen},
    )


def _effect(request: PowerBootRequest, _node: NodeState) -> str:
    return f"eject {request.uri}" if request.eject else f"power cycle, boot once from {request.uri}"


OPERATION: NodeOperation[PowerBootRequest] = NodeOperation(
    name="power boot",
    question=_question,
    check=_check,
    effect=_effect,
    act=_act,
)
preview, run = OPERATION.preview, OPERATION.run
