"""What NVIDIA's Xid and SXid codes mean, and what to do: the tables in `data/`, each row with its source."""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clusterctl.fleet.finding import Verdict
from clusterctl_burnin.package_data import text_of


class Action(enum.Enum):
    """What an Xid asks for."""

    NOTE = "note"
    APPLICATION = "application"
    SECONDARY = "secondary"
    RESET = "reset"
    REBOOT = "reboot"
    RESEAT = "reseat"
    SUPPORT = "support"
    UPDATE = "update"
    NVLINK = "nvlink"
    VERDICT = "verdict"

    @property
    def verdict(self) -> Verdict:
        return Verdict.WARN if self in (Action.NOTE, Action.APPLICATION, Action.SECONDARY) else Verdict.FAIL

    @property
    def remedy(self) -> str:
        return _REMEDIES[self]


_REMEDIES = {
    Action.NOTE: "check this GPU again after the next burn-in",
    Action.APPLICATION: "if it comes back without a program that could cause it, run a GPU diagnosis",
    Action.SECONDARY: "look for the error before it: this one is a consequence",
    Action.RESET: "drain the node and reset the GPU; if it comes back, replace the GPU",
    Action.REBOOT: "power the node off and on; if it comes back within 30 days, reseat the GPU, then replace it",
    Action.RESEAT: "power off, check power leads and PCIe seating of the GPU, then run the burn-in again",
    Action.SUPPORT: "collect nvidia-bug-report.sh and open a case with NVIDIA",
    Action.UPDATE: "install matching versions of driver and firmware",
    Action.NVLINK: "run nvidia-smi nvlink -e; if it names the same link after a reboot, replace the GPU or its tray",
    Action.VERDICT: "follow the driver's message",
}

_SEVERITY = re.compile(r"\b(?:Non-fatal|Fatal)\b")
_UNKNOWN = "look the message up with the vendor, then add it to the table of known messages"
_RECOVERY = {
    "None": (Verdict.WARN, "nothing: the driver has recovered the GPU"),
    "Drain P2P": (Verdict.FAIL, "drain the node, reset the GPUs that are linked to this one"),
    "Drain and Reset": (Verdict.FAIL, "drain the node and reset the GPU"),
    "GPU Reset Required": (Verdict.FAIL, "reset the GPU"),
    "Node Reboot Required": (Verdict.FAIL, "reboot the node"),
}
"""The actions of Xid 154, which outranks the table."""


@dataclass(frozen=True, slots=True)
class XidMeaning:
    """One row of the Xid table."""

    code: int
    action: Action
    meaning: str


@dataclass(frozen=True, slots=True)
class SxidMeaning:
    """One row of the SXid table."""

    code: int
    fatal: bool
    meaning: str


@functools.cache
def xid_table() -> Mapping[int, XidMeaning]:
    return {int(c): XidMeaning(int(c), Action(action), meaning) for c, action, meaning, _ in _rows("xid")}


@functools.cache
def sxid_table() -> Mapping[int, SxidMeaning]:
    return {int(c): SxidMeaning(int(c), severity == "fatal", meaning) for c, severity, meaning in _rows("sxid")}


def recovery(text: str) -> tuple[Verdict, str] | None:
    """Return verdict and remedy of an Xid 154's text (`… changed from 0x0 (None) to 0x2 (Node Reboot Required)`)."""
    return _RECOVERY.get(text.rpartition("(")[2].partition(")")[0])


def switch_severity(text: str) -> str:
    """Return the severity that an SXid's line names, `Fatal` or `Non-fatal`; empty where it names none."""
    match = _SEVERITY.search(text)
    return match[0] if match else ""


def switch_verdict(severity: str, fatal: bool | None) -> tuple[Verdict, str]:
    """Return verdict and remedy for a severity in the line, empty for none, and the table's, None for none."""
    if fatal is None and not severity:
        return Verdict.INCONCLUSIVE, _UNKNOWN
    if severity == "Fatal" or (fatal and not severity):
        return Verdict.FAIL, "reboot the node; if it comes back, replace the NVSwitch's tray"
    return Verdict.WARN, "check this NVSwitch again after the next burn-in"


def _rows(table: str) -> Iterator[list[str]]:
    lines = text_of(f"data/{table}.tsv").splitlines()
    return (line.split("\t") for line in lines if line and not line.startswith("#"))
