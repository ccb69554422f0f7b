"""Retirement of a machine with its drives erased."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from clusterctl.edges.site.host_networks import host_networks
from clusterctl.fleet.decisions.decision import checked_reason
from clusterctl.fleet.decisions.permissions import require_living
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Drive
from clusterctl.fleet.state import NodeState
from clusterctl.operations.context import SiteContext
from clusterctl.operations.gold_pool import publish
from clusterctl.operations.operation import Control, Effect, Outcome, Preview, Result
from clusterctl.operations.runner import claimed, result
from clusterctl.operations.selection import require_listed
from clusterctl.operations.site_facts import erasing_backend, forget_host_key, never_installed
from clusterctl.ports import Deadline
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.retire import DriveWiper

NAME = "retire --wipe"
ERASING = frozenset({"maas", "pxe"})
"""Backends that erase drives; with another one nothing is begun, and the node stays as it is."""
WIPE_S = 48 * 3600.0
"""Overwriting a drive of 30 TB takes a day and a half; a later run goes on watching."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WipeRequest:
    """What is erased.

    serial   of the machine, as the operator read it on its label; the preview needs none
    adopted  also a machine that clusterctl did not install, through the site's own PXE
    """

    node: str
    reason: str
    serial: str = ""
    adopted: bool = False


def preview(context: SiteContext, request: WipeRequest) -> Preview:
    """Return the drives that would be erased, each as one effect. Raises `UsageError` where that cannot be."""
    node = context.node(request.node)
    return _preview(node, _erasable(context, node, request), request).of(_asked(request))


def _asked(request: WipeRequest) -> WipeRequest:
    """Return the request without the serial: it is typed after the preview, and compared with the machine's."""
    return replace(request, serial="")


def _preview(node: NodeState, drives: Sequence[Drive], request: WipeRequest) -> Preview:
    others = "clusterctl did not install this machine: its OS and data are of others, and are lost"
    return Preview(
        operation=NAME,
        warnings=(others,) if request.adopted else (),
        question=f"Erase {len(drives)} drives of {node.name} ({node.location}, serial {node.serial}) beyond recovery, "
        "switch it off and retire it for good?",
        effects=tuple(
            Effect(node=node.name, text=f"serial {node.serial}: erase {drive_text(drive)}") for drive in drives
        ),
    )


def run(context: SiteContext, request: WipeRequest, control: Control) -> Result:
    """Erase the drives of the proven machine, switch it off and retire it; interrupted, the same request goes on."""
    node = context.node(request.node)
    control.require(_preview(node, _erasable(context, node, request), request).of(_asked(request)))
    require_serial(node, request.serial)
    with closing(context.adapters()) as adapters, claimed(context, [node]) as claims:
        wiper = DriveWiper(
            adapters.eraser,
            adapters.bmcs,
            context.site.bmc_address,
            context.journal,
            context.site.settings.timing.install_poll_s,
            host_networks(context.site).address,
        )
        try:
            fresh = context.journal.state(node.id)
            _erasable(context, fresh, request)
            acts = IntentLog(context.journal, claims)
            wiper.wipe(fresh, acts, checked_reason(request.reason), Deadline.after(WIPE_S, control.cancelled))
            forget_host_key(context.site, node.name)
        finally:
            publish(context.journal, adapters.pool)
    cause = context.journal.state(node.id).cause
    text = f"its drives are erased, it is off and retired ({cause}); remove it from the sheet"
    return result(NAME, [Outcome(node=node.name, text=text)], control)


def require_serial(node: NodeState, serial: str) -> None:
    """Raise `UsageError` unless the operator named the machine by its serial."""
    if not serial:
        remedy = "pass --serial SERIAL, as it stands on the machine's label"
        raise UsageError("an erase needs the machine's serial", where="--serial", remedy=remedy)
    if serial.strip() != node.serial:
        remedy = "look at the machine's label; clusterctl nodes shows the serial that its BMC reports"
        raise UsageError(
            f"{serial} is not the serial of {node.name}: nothing was done", where="--serial", remedy=remedy
        )


def drive_text(drive: Drive) -> str:
    return f"{drive.slot}, serial {drive.serial or 'unknown'}, {drive.model}, {drive.size_bytes / 1e9:.0f} GB"


def _erasable(context: SiteContext, node: NodeState, request: WipeRequest) -> Sequence[Drive]:
    """Return the drives that would be erased. Raises `UsageError` where that cannot be."""
    require_living(node)
    checked_reason(request.reason)
    require_listed(context, [node.name])
    backend = erasing_backend(context.site, node.name)
    if never_installed(context.site, node):
        _require_foreign(context, node, backend, request)
    elif request.adopted:
        remedy = "leave --adopted out"
        raise UsageError("clusterctl installed it: it was not adopted", where=node.name, remedy=remedy)
    if backend not in ERASING:
        remedy = "erase its drives by hand, then retire it without --wipe"
        raise UsageError(f"its provisioning backend {backend} erases no drives", where=node.name, remedy=remedy)
    drives = node.inventory.drives if node.inventory is not None else None
    if not (node.serial and drives and node.inventory and node.inventory.complete("drives")):
        remedy = f"clusterctl discover --limit {node.name} first, or retire it without --wipe"
        raise UsageError("its serial or its drives are not known", where=node.name, remedy=remedy)
    nameless = [drive.slot for drive in drives if not drive.serial]
    if backend == "pxe" and nameless:
        remedy = "erase its drives by hand, then retire it without --wipe"
        message = f"its BMC reports no serial of drive {', '.join(nameless)}: nothing would identify it on the machine"
        raise UsageError(message, where=node.name, remedy=remedy)
    return drives


def _require_foreign(context: SiteContext, node: NodeState, backend: str, request: WipeRequest) -> None:
    """Raise `UsageError` unless the operator orders a machine that clusterctl did not install, and PXE can erase it."""
    by_hand = "erase its drives by hand, then retire it without --wipe"
    if backend != "pxe" or not context.site.by_name[node.name].bmc:
        needs = "its erase needs a BMC, and the site's own PXE (backend: pxe), which boots any machine"
        raise UsageError(f"clusterctl did not install it: {needs}", where=node.name, remedy=by_hand)
    if not request.adopted:
        raise UsageError(
            "clusterctl did not install it, and never writes to its disks without --adopted",
            where=node.name,
            remedy=f"add --adopted to lose all data of a machine that others installed; or {by_hand}",
        )
