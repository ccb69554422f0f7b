"""Xids 144 to 150: errors of NVLink 5. The message itself gives their severity (`data/xid_nvlink5.tsv`)."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from clusterctl.fleet.finding import Verdict
from clusterctl_burnin.package_data import text_of

NVLINK5 = frozenset(range(144, 151))
_MESSAGE = re.compile(
    r"(?P<unit>[A-Z][\w/ ]{0,40}?)\s{1,4}(?P<severity>Fatal|Non-?fatal)\s+XC\d i\d Link (?P<link>-?\d+)"
    r"(?: \(0x(?P<interrupt>[0-9a-f]{8}) 0x(?P<status>[0-9a-f]{8}))?"
)
_RESET = "drain the node and reset the GPU; if the same link comes back, replace the GPU or its tray"
_LOOK = {
    "link": "reset the GPU; if the same link comes back, reseat the tray and the NVLink cables",
    "peer": "look for an error of the GPU or NVSwitch at the other end of the link, then reset both",
    "software": "look for what took the link down (fabric manager, an operator); run the burn-in again",
    "host": "look for an error of the host at the same time; run the burn-in again",
    "support": _RESET,
    "": _RESET,
}


@dataclass(frozen=True, slots=True)
class _Row:
    code: int
    units: frozenset[str]
    masks: tuple[re.Pattern[str], ...]
    statuses: frozenset[int]
    action: str
    masks_if: tuple[re.Pattern[str], ...]
    action_if: str
    look: str

    def fits(self, code: int, units: frozenset[str], bits: str, status: int) -> bool:
        return (
            self.code == code
            and bool(self.units & units)
            and (not self.statuses or status in self.statuses)
            and any(mask.fullmatch(bits) for mask in (*self.masks, *self.masks_if))
        )

    def asks(self, bits: str) -> str:
        return self.action_if if any(mask.fullmatch(bits) for mask in self.masks_if) else self.action


@dataclass(frozen=True, slots=True)
class LinkError:
    """What one message of NVLink 5 means."""

    verdict: Verdict
    meaning: str
    remedy: str


def link_error(code: int, text: str) -> LinkError | None:
    """Return what the message means; None where it gives no severity.

    A fatal error fails, unless the catalogue asks for nothing: then an operator must look. Another error is a warning,
    unless the catalogue asks for a reset.
    """
    match = _MESSAGE.search(text)
    if match is None:
        return None
    fatal, asked, look = match["severity"] == "Fatal", "", ""
    if match["interrupt"]:
        bits = f"{int(match['interrupt'], 16):032b}"
        units = frozenset(match["unit"].replace(" ", "_").split("/"))
        status = int(match["status"], 16)
        rows = [row for row in _table() if row.fits(code, units, bits, status)]
        if rows:
            asked, look = rows[0].asks(bits), rows[0].look
    verdict = _verdict(fatal=fatal, asked=asked)
    link = "" if match["link"].startswith("-") else f" on link {int(match['link'])}"
    meaning = f"a {'fatal' if fatal else 'non-fatal'} NVLink error{link} ({match['unit'].strip()})"
    remedy = _LOOK[look] if verdict is not Verdict.WARN else "check this link again after the next burn-in"
    return LinkError(verdict, meaning, remedy)


def _verdict(*, fatal: bool, asked: str) -> Verdict:
    if fatal:
        return Verdict.INCONCLUSIVE if asked == "none" else Verdict.FAIL
    return Verdict.FAIL if asked == "reset" else Verdict.WARN


@functools.cache
def _table() -> tuple[_Row, ...]:
    lines = text_of("data/xid_nvlink5.tsv").splitlines()
    return tuple(_row(line.split("\t")) for line in lines if line and not line.startswith("#"))


def _row(fields: list[str]) -> _Row:
    code, units, before, since, status, action, if_before, if_since, action_if, look = fields
    return _Row(
        int(code),
        frozenset(units.split("/")),
        _masks(before, since),
        frozenset(int(value, 16) for value in status.split("/") if value),
        action,
        _masks(if_before, if_since),
        action_if,
        look,
    )


def _masks(*masks: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(mask.replace("-", ".")) for mask in masks if mask)
