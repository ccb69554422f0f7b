"""A machine's power supplies: each that is plugged in must be well."""

from __future__ import annotations

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.judging import label, unmeasured
from clusterctl.fleet.node import Inventory, Psu
from clusterctl.fleet.quantity import Quantity, exactly

CHECK = "psu"


def judge_psus(inventory: Inventory) -> tuple[Finding, ...]:
    """A finding for each that fails, else one for all. One that does not tell its health is not taken to be well."""
    psus = inventory.psus
    if not psus:
        return (unmeasured(CHECK, "the BMC does not tell the state of its power supplies"),)
    failed = [psu for psu in psus if psu.healthy is False]
    if failed:
        return tuple(_failed(psu) for psu in failed)
    silent = [psu for psu in psus if psu.healthy is None]
    if silent:
        return (unmeasured(CHECK, f"the BMC does not tell how well power supply {_labels(silent)} is"),)
    return (
        passed(
            CHECK,
            "all are well",
            measured=Quantity(len(psus), "power supplies"),
            expected=exactly(len(psus), "power supplies"),
        ),
    )


def _failed(psu: Psu) -> Finding:
    return Finding(
        check=CHECK,
        verdict=Verdict.FAIL,
        code=Code.POWER_SUPPLY_FAILED,
        subject=psu.slot,
        cause=f"power supply {label(psu)} fails, or has no input",
        measured="failing",
        expected="well",
        remedy=f"check cord and feed of power supply {label(psu)}; if its light stays amber, replace it",
        serial=psu.serial or "",
    )


def _labels(psus: list[Psu]) -> str:
    return ", ".join(label(psu) for psu in psus)
