"""A node's name, place, addresses or chassis: the site's files and the journal, changed together.

The BMC must report the node's serial first. The sheet is written before the journal's description of the node: the
serial in it connects both, whatever is killed in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site.host_networks import network_rules
from clusterctl.edges.site.place_edits import PlaceEdits, place_edits
from clusterctl.edges.site.textfile import read_text
from clusterctl.fleet.acts import Act, PlaceDetails
from clusterctl.fleet.decisions.decision import checked_reason
from clusterctl.fleet.decisions.identity import swappable, swapped
from clusterctl.fleet.decisions.relocate import before, changes, first_step, relocatable, relocated
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.network.addresses import HostAddresses, assign
from clusterctl.fleet.network.rules import Addressee, GivenAddress
from clusterctl.fleet.node import Serial, Stage, Step
from clusterctl.fleet.payloads.node import NodeDescribed
from clusterctl.fleet.state import NodeState
from clusterctl.formats.site.sheets import read_address_sheet
from clusterctl.operations.adapters import Access
from clusterctl.operations.context import SiteContext
from clusterctl.operations.gold_pool import gold_pool, publish
from clusterctl.operations.operation import Control, Effect, Outcome, Preview, Result
from clusterctl.operations.pxe import rename_records
from clusterctl.operations.runner import claimed, result
from clusterctl.operations.site_facts import backend_of
from clusterctl.ports import Bmcs, Deadline
from clusterctl.site.nodes import SiteNode, canonical_address, require_valid
from clusterctl.steps.executor.intent_log import IntentLog

NAME = "node"
BMC_S = 300.0
"""Seconds for a BMC to report its inventory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelocateRequest:
    """`node`: its name until now. What is empty, and a unit of 0, stays as the site's files have it.

    name           its new name
    rack, unit     where it stands now
    bmc, address   the addresses of its BMC and of its host
    serial         of the chassis that stands there now, where it was swapped
    """

    node: str
    reason: str
    name: str = ""
    rack: str = ""
    unit: int = 0
    bmc: str = ""
    address: str = ""
    serial: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelocationPlan:
    """A relocation as it would be carried out.

    serial     which the BMC must report: the node's, or that of the new chassis
    addresses  interface → (address until now, new address)
    """

    node: NodeState
    serial: Serial
    listed: SiteNode
    wanted: SiteNode
    was: PlaceDetails
    edits: PlaceEdits
    addresses: Mapping[str, tuple[str, str]]

    @property
    def swaps(self) -> bool:
        """Whether another chassis is the node from now on."""
        return self.serial != self.node.serial

    @property
    def described(self) -> NodeDescribed:
        node = self.wanted
        return NodeDescribed(
            name=node.name,
            bmc=node.bmc,
            rack=node.rack,
            unit=node.unit,
            serial=Serial(node.serial) if node.serial else None,
            boot_mac=node.boot_mac,
        )


def preview(context: SiteContext, request: RelocateRequest) -> Preview:
    """Return what would change in each file, and what must be proven again. Raises `UsageError` where it may not be."""
    return _preview(planned(context, request)).of(request)


def run(context: SiteContext, request: RelocateRequest, control: Control) -> Result:
    """Prove the machine, write the site's files, then the journal; interrupted, the same request goes on."""
    plan = planned(context, request)
    control.require(_preview(plan).of(request))
    with closing(context.adapters(Access.READ)) as adapters, claimed(context, [plan.node]) as claims:
        relocatable(context.journal.state(plan.node.id), CLOCK.now())
        evidence = _prove(context, plan, adapters.bmcs, Deadline.after(BMC_S, control.cancelled))
        for edit in plan.edits.files:
            edit.require_unchanged()
        IntentLog(context.journal, claims).intend(plan.node.id, Act.PLACE_WRITE, plan.wanted.name, plan.was)
        for edit in plan.edits.files:
            edit.write()
        if plan.was.name != plan.wanted.name:
            rename_records(context.site, plan.was.name, plan.wanted.name, plan.node.host_key)
        node = context.journal.state(plan.node.id)
        events = relocated(node, plan.was, plan.described, request.reason, evidence)
        if plan.swaps:
            events = (*events[:2], *swapped(node, plan.serial, request.reason, evidence))
        context.journal.append(events, claim=claims[node.id])
        publish(context.journal, gold_pool(context.site))
    after = context.journal.state(plan.node.id)
    values = {"stage": after.stage.value, "serial": plan.serial, "former_name": plan.was.name}
    text = "; ".join((*_changes(plan), _then(plan)))
    return result(NAME, [Outcome(node=after.name, text=text, values=values)], control)


def planned(context: SiteContext, request: RelocateRequest) -> RelocationPlan:
    checked_reason(request.reason)
    node = _subject(context, request)
    serial = relocatable(node, CLOCK.now())
    if request.serial:
        serial = Serial(request.serial)
        swappable(node, serial, context.journal.summaries())
    listed = _listed(context, node, request)
    wanted = _wanted(listed, node, request)
    require_valid([wanted if one is listed else one for one in context.site.nodes])
    former = before(node, readdressed=False).name
    edits = place_edits(context.site, listed, wanted, former)
    addresses = _addresses(context, listed, wanted, former)
    was = before(node, readdressed=bool(addresses))
    plan = RelocationPlan(
        node=node, serial=serial, listed=listed, wanted=wanted, was=was, edits=edits, addresses=addresses
    )
    if not (
        plan.swaps or changes(was, plan.described) or edits.files or node.intent(Act.PLACE_WRITE) in node.open_acts
    ):
        raise UsageError(f"nothing changes: {wanted.name} is that already", where=request.node, remedy="nothing to do")
    _require_same_installer(context, plan)
    return plan


def _subject(context: SiteContext, request: RelocateRequest) -> NodeState:
    """Return the node, also where an earlier run, or an operator in the sheet, gave it its new name already."""
    known = {node.name: node.id for node in context.journal.summaries()}
    new = request.name if request.name != request.node else ""
    if request.node in known:
        if new in known:
            remedy = f"if both are one machine: clusterctl merge {new} --serial SERIAL --from {request.node}"
            raise UsageError(f"{new} is another node", where=new, remedy=remedy)
        return context.node(request.node)
    if new in known:
        node = context.node(new)
        described = context.journal.histories([node.id], [Kind.NODE_DESCRIBED])
        names = {event.payload.name for event in described if isinstance(event.payload, NodeDescribed)}
        if request.node in names:
            return node
    return context.node(request.node)  # raises: the node is unknown


def _listed(context: SiteContext, node: NodeState, request: RelocateRequest) -> SiteNode:
    """Return the node as the site's files have it, under its former or its new name."""
    by_name = context.site.by_name
    former = by_name.get(request.node)
    new = by_name.get(request.name) if request.name else None
    if former is not None and new is not None and new is not former:
        raise UsageError(f"{request.name} is another node", where=new.where, remedy="choose a name that is free")
    found = former or new
    if found is None:
        remedy = "put it back into the sheet, so that its BMC can be asked"
        raise UsageError("the sheet no longer names it", where=request.node, remedy=remedy)
    if found.serial and found.serial not in (node.serial, *node.aliases, request.serial):
        remedy = f"clusterctl node swap {node.name} if its chassis was swapped; else correct the sheet"
        raise UsageError(
            f"the sheet has serial {found.serial}, its BMC {node.serial}", where=found.where, remedy=remedy
        )
    return found


def _wanted(listed: SiteNode, node: NodeState, request: RelocateRequest) -> SiteNode:
    """Return the node as the site's files shall have it; its serial is in the sheet from now on.

    The cards of a swapped chassis have other MACs: its BMC reports them.
    """
    if request.serial:
        listed = replace(listed, boot_mac=None, bmc_mac=None)
    return replace(
        listed,
        name=request.name or listed.name,
        serial=request.serial or listed.serial or node.serial or "",
        rack=request.rack or listed.rack,
        unit=request.unit or (None if request.rack and request.rack != listed.rack else listed.unit),
        bmc=_address(request.bmc, "--bmc") or listed.bmc,
        address=_address(request.address, "--address") or listed.address,
    )


def _address(text: str, option: str) -> str:
    try:
        return canonical_address(text) if text else ""
    except ValueError as error:
        raise UsageError(f"{error}, found {text!r}", where=option, remedy="write one IP address") from None


def _addresses(context: SiteContext, listed: SiteNode, wanted: SiteNode, former: str) -> Mapping[str, tuple[str, str]]:
    """Return the addresses of the host that change. Raises `UsageError` where the new ones collide or are missing."""
    was = _of_host(context, listed, listed, former)
    now = _of_host(context, listed, wanted, former)
    return {name: (was.get(name, ""), now.get(name, "")) for name in {**was, **now} if was.get(name) != now.get(name)}


def _of_host(context: SiteContext, listed: SiteNode, shown: SiteNode, former: str) -> Mapping[str, str]:
    """Return the node's addresses by interface, with `shown` in its place; its own one by the name `host`."""
    rules = network_rules(context.site)
    nodes = [
        Addressee(one.name, one.bmc, one.where, one.address)
        for one in (shown if each is listed else each for each in context.site.nodes)
    ]
    given = tuple(_given(context, dict.fromkeys((former, listed.name), shown.name)))
    found: HostAddresses = assign(rules, nodes, given)
    own = found.management.get(shown.name, "")
    return {**({"host": own} if own else {}), **found.interfaces.get(shown.name, {})}


def _given(context: SiteContext, names: Mapping[str, str]) -> Iterator[GivenAddress]:
    """Yield the lines of the sheet of addresses, with the name of `names` in the place of the one in the file."""
    name = context.site.settings.network.addresses
    if name:
        file = Path(context.site.path(name))
        for row in read_address_sheet(read_text(file), str(file)):
            yield replace(row, node=names.get(row.node, row.node))


def _require_same_installer(context: SiteContext, plan: RelocationPlan) -> None:
    old, new = backend_of(context.site, plan.was.name), backend_of(context.site, plan.wanted.name)
    if old != new:
        raise UsageError(
            f"{plan.wanted.name} would be installed by {new}, and {plan.was.name} was by {old}",
            where=context.site.where("provisioning"),
            remedy="choose a name of the same installer, or change its patterns first",
        )


def _preview(plan: RelocationPlan) -> Preview:
    name = plan.wanted.name
    effects = [Effect(node=name, text=f"serial {plan.serial}: {what}") for what in _changes(plan)]
    effects += [
        Effect(node=name, text=f"{interface} {was or 'none'} → {now or 'none'}")
        for interface, (was, now) in sorted(plan.addresses.items())
    ]
    effects += [Effect(node=edit.file.name, text=change) for edit in plan.edits.files for change in edit.changes]
    effects.append(Effect(node=name, text=_then(plan)))
    return Preview(
        operation=NAME,
        question=f"Record this for the machine with serial {plan.serial}, once its BMC has reported that serial?",
        effects=tuple(effects),
        warnings=(*plan.edits.by_hand, *_warnings(plan)),
    )


def _changes(plan: RelocationPlan) -> tuple[str, ...]:
    swap = (f"another chassis, instead of serial {plan.node.serial}",) if plan.swaps else ()
    return (*swap, *changes(plan.was, plan.described))


def _then(plan: RelocationPlan) -> str:
    if plan.swaps:
        return "its evidence, waivers and repeated failures no longer count: it takes all steps again, discover first"
    since = first_step(plan.node, plan.was, plan.described)
    if since is None:
        return "nothing has to be proven again"
    if plan.node.stage is Stage.QUARANTINED:
        return f"it stays in quarantine; a release leads back to {since.value}"
    steps = list(Step)
    return f"to be proven again: {', '.join(step.value for step in steps[steps.index(since) :])}"


def _warnings(plan: RelocationPlan) -> Iterator[str]:
    moved = (plan.was.rack, plan.was.unit) != (plan.wanted.rack, plan.wanted.unit)
    if moved:
        yield "the wiring plan keeps the ports of the other ends: correct them there where its cables changed, too"
    if plan.was.readdressed:
        yield (
            f"the installer gives a host its addresses: clusterctl install --reinstall {plan.wanted.name}, or set them "
            "on the host, before it is proven again"
        )
    if plan.was.name != plan.wanted.name:
        yield f"other systems know {plan.was.name}: write Slurm's files again (clusterctl export slurm), and DNS"


def _prove(context: SiteContext, plan: RelocationPlan, bmcs: Bmcs, deadline: Deadline) -> tuple[Digest, ...]:
    """Return the evidence that the BMC at the node's address reports its serial. Raises `EdgeError` where it does not.

    A machine in another rack is asked at its new address.
    """
    address = replace(context.site.bmc_address(plan.listed.name), host=plan.wanted.bmc, machine=plan.node.serial or "")
    with bmcs.open(address, deadline) as bmc:
        seen = bmc.inventory(deadline)
    context.journal.store(seen.evidence)
    if not seen.value.is_machine(plan.serial):
        raise EdgeError(
            f"the machine with serial {seen.value.serial} answers at {plan.wanted.bmc}, not {plan.serial}: nothing was "
            "changed",
            where=plan.node.name,
            remedy="find out which machine has that address; clusterctl node swap if the chassis was swapped",
        )
    return tuple(item.digest for item in seen.evidence)
