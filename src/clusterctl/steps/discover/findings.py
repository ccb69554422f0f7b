"""What discover finds of a machine beyond its SKU: identity, ports, what is doubtful, and where to go. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from shlex import quote

from clusterctl.fleet.bmc.logs import UNREAD, LogEntry
from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.matching import fitting_skus
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.node import Inventory, Nic
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.fleet.state import NodeState

SHOWN = 5


def identity(node: NodeState, inventory: Inventory, owners: Mapping[str, str]) -> Finding:
    """Return whether the expected machine answers.

    `owners`: the node that each serial and alias belongs to; empty for an alias that several nodes have, which is of
    an enclosure that they share. A machine with a new serial is the same one where it has kept an alias of its own.
    """
    owner = owners.get(inventory.serial, node.name)
    expected = node.serial or node.expected_serial
    if owner != node.name:
        code = Code.SERIAL_TAKEN
        cause = f"serial {inventory.serial} already belongs to {owner}: two addresses lead to one machine"
        remedy = (
            f"find out which BMC address is right, and take {node.name} or {owner} out of the site; if the machine "
            f"moved here: clusterctl merge {node.name} --serial {quote(inventory.serial)} --from {owner}"
        )
    elif expected and expected != inventory.serial:
        if kept := _kept_serial(node, inventory, owners):
            return _relabelled(node, inventory, expected, kept)
        code = Code.WRONG_SERIAL
        cause = f"serial {inventory.serial} answers at {node.bmc or node.address}, but {expected} was expected"
        remedy = (
            f"check the sheet and the BMC's network cable at {node.location}; nothing was done to the machine; if "
            f"it was swapped: clusterctl merge {node.name} --serial {quote(inventory.serial)}"
        )
    else:
        return passed("identity", f"serial {inventory.serial}", serial=inventory.serial)
    return Finding(
        check="identity",
        verdict=Verdict.FAIL,
        code=code,
        cause=cause,
        measured=inventory.serial,
        expected=expected or None,
        remedy=remedy,
        serial=inventory.serial,
    )


def _kept_serial(node: NodeState, inventory: Inventory, owners: Mapping[str, str]) -> str:
    """Return the node's own serial or alias that the machine still has; empty where it has none."""
    before = node.inventory
    known = [node.serial or node.expected_serial, *(before.aliases if before is not None else ())]
    own = (serial for serial in known if inventory.is_machine(serial))
    return next((serial for serial in own if serial and owners.get(serial, node.name) == node.name), "")


def _relabelled(node: NodeState, inventory: Inventory, expected: str, kept: str) -> Finding:
    """Return that it is the machine by another of its serials: the sheet's, or all that a board swap has left."""
    if node.serial is None:
        return passed("identity", f"serial {inventory.serial}, also {kept}", serial=inventory.serial)
    return Finding(
        check="identity",
        verdict=Verdict.WARN,
        code=Code.MACHINE_RELABELLED,
        cause=f"serial {inventory.serial} answers at {node.bmc} instead of {expected}, with {kept} as before",
        measured=inventory.serial,
        expected=expected,
        remedy="correct the serial in the sheet if a board was swapped; else find out why the machine has a new one",
        serial=inventory.serial,
    )


def unread(inventory: Inventory, entries: Sequence[LogEntry]) -> tuple[Finding, ...]:
    """Return one finding on all that the BMC lists and does not give. Checks report what the SKU needs of it."""
    lost = list(dict.fromkeys(str(one) for one in inventory.unread))
    unread_logs = [entry.message for entry in entries if entry.message_id == UNREAD]
    lost += [f"log: {message}" for message in unread_logs if message not in lost]
    if not lost:
        return ()
    shown = "; ".join(text[:160] for text in lost[:SHOWN])
    more = f"; and {len(lost) - SHOWN} more, in the evidence" if len(lost) > SHOWN else ""
    finding = Finding(
        check="bmc_unread",
        verdict=Verdict.WARN,
        code=Code.BMC_UNREAD,
        subject="bmc",
        cause=f"the BMC lists {len(lost)} resources that it does not give: {shown}{more}",
        measured=Quantity(len(lost), "resources"),
        expected=exactly(0, "resources"),
        remedy="discover it again; if they stay unreadable, reset the BMC, then update its firmware",
        deterministic=False,
    )
    return (finding,)


def bmc_answers(node: NodeState) -> Finding:
    return passed("bmc", f"the BMC at {node.bmc} answers", subject="bmc")


def boot_ports(node: NodeState, inventory: Inventory) -> Finding:
    """Return whether it is known from which port the machine can be installed, and whether that port has a link.

    The site's boot port counts before those that the BMC reports to boot from.
    """
    count = len(inventory.nics or ())
    if unplugged := _unplugged(node, inventory.nics or ()):
        return unplugged
    if count or node.boot_mac:
        found = f"{count} Ethernet ports" if count else f"the BMC reports none, the site names {node.boot_mac}"
        return passed("nics", found, measured=Quantity(count, "ports"))
    return Finding(
        check="nics",
        verdict=Verdict.INCONCLUSIVE,
        code=Code.BOOT_PORT_UNKNOWN,
        cause="the BMC reports no Ethernet port of the host, so its boot port is unknown",
        remedy="write the MAC address of the port that it boots from into the sheet (column boot_mac)",
        deterministic=False,
    )


def _boot_nics(node: NodeState, nics: Sequence[Nic]) -> list[Nic]:
    return [nic for nic in nics if (nic.mac == node.boot_mac if node.boot_mac else nic.boots)]


def _unplugged(node: NodeState, nics: Sequence[Nic]) -> Finding | None:
    """Return the finding on a boot port without a link, where another port has one; else None.

    Many BMCs report every port as down, on running machines, too: a down port means something only where another one is
    up. It is a warning: the BMC may report an earlier boot's link.
    """
    boot = _boot_nics(node, nics)
    linked = [nic for nic in nics if nic.link]
    if not boot or not linked or any(nic.link is not False for nic in boot):
        return None
    down = ", ".join(f"{nic.slot} ({nic.mac})" for nic in boot[:SHOWN])
    up = ", ".join(f"{nic.slot} ({nic.mac})" for nic in linked[:SHOWN])
    return Finding(
        check="nics",
        verdict=Verdict.WARN,
        code=Code.BOOT_PORT_NO_LINK,
        subject=boot[0].slot if len(boot) == 1 else "node",
        cause=f"the BMC reports no link on the port that the machine boots from, {down}, and a link on {up}",
        measured="down",
        expected="up",
        remedy=f"plug the cable of the install network into {down}; if another port is right, write its MAC address "
        "into the sheet (column boot_mac)",
        deterministic=False,
    )


def with_place(finding: Finding, node: NodeState) -> Finding:
    """Return the finding with its remedy beginning with the place where it is carried out."""
    if not (finding.remedy and node.location.rack):
        return finding
    return replace(finding, remedy=f"{node.location}, {node.name}: {finding.remedy}")


def doubted(finding: Finding, inventory: Inventory) -> Finding:
    """Return a finding on a missing part as unmeasured where the inventory is stale: the part may be there."""
    if not inventory.stale or finding.verdict is not Verdict.FAIL or finding.subject != "node":
        return finding
    remedy = "power the machine on, wait until its self-test is over, and discover it again"
    cause = f"{finding.cause}; {inventory.stale}"
    return replace(finding, verdict=Verdict.INCONCLUSIVE, cause=cause, remedy=remedy, deterministic=False)


def following(finding: Finding, cause: Finding) -> Finding:
    """Return what is unmeasured of the machine as a whole as a consequence of `cause`."""
    unknown = finding.verdict is Verdict.INCONCLUSIVE and finding.subject == "node" and not finding.root
    return replace(finding, root=cause.key) if unknown else finding


def no_sku(inventory: Inventory, skus: Sequence[Sku]) -> Finding:
    """Return the finding on a machine that fits none of the SKUs, or several."""
    could_be = fitting_skus(inventory, skus)
    if len(could_be) > 1 and not inventory.gpus:
        names = ", ".join(sku.name for sku in could_be)
        cause = f"it could be any of {names}, and the BMC does not report its GPUs"
        remedy = "make the SKUs' models differ, or take those out of site.yml that the site does not have"
        return Finding(
            check="sku_model",
            verdict=Verdict.INCONCLUSIVE,
            code=Code.SKU_AMBIGUOUS,
            cause=cause,
            expected=names,
            remedy=remedy,
        )
    return Finding(
        check="sku_model",
        verdict=Verdict.FAIL,
        code=Code.NO_SKU,
        cause=f"{inventory.manufacturer} {inventory.model} is none of the site's SKUs",
        measured=f"{inventory.manufacturer} {inventory.model}",
        expected=", ".join(sku.name for sku in skus),
        remedy="make its SKU (clusterctl sku new) and add it to site.yml, or take the machine out of the site",
        serial=inventory.serial,
    )
