"""Spellings of ports and link rates in wiring plans. A port becomes a switch's number, a board's port, or an adapter.

A cage holds two ports (OSFP): port p of cage c is IB port 2(c − 1) + p. The operating systems of the switches write a
cage's port as `c/p` or `1/c/p` (MLNX-OS, slot 1), `swCpP` (NVOS) and `swpCsP` (Cumulus: P counts from 0); labels as
`OSFP c Port p`. A port that is split again has the number 4(c − 1) + 2(p − 1) + s. The same formulas hold for `1/n`,
port n of slot 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from clusterctl.fleet.fabric.topology import LANE_GBPS
from clusterctl.fleet.fabric.wiring import board_port

MAX_NAME = 100
"""Characters of a port's name; a longer text is none, and would take these expressions long."""
_PREFIX = re.compile(
    r"^(?:(?:switch|interface|anschluss|buchse|port|cage|osfp|qsfp|p|#)[\s:_.-]*)+(?=\d)|"
    r"^(?:infiniband|ethernet|eth|ib)\s*(?=\d+/)|^(?:infiniband|ib)\s+port\s*(?=\d)",
    re.IGNORECASE,
)
"""`ib0` and `eth1` are interfaces of a host; `IB1/5` is a port of a switch."""
_NUMBER = re.compile(r"(\d{1,4})(?:[.,]0+)?$")
_CAGE = re.compile(
    r"(?:(?:switch|osfp|qsfp|cage|twin|transceiver)[\s:_.-]*)+(\d{1,3})"
    r"(?:\s*[/,_.:-]\s*(?:port|p)?|\s+(?:port|p)|p)\s*(\d)$",
    re.IGNORECASE,
)
_PARTS = re.compile(r"\d{1,4}(?:\s*[/:-]\s*\d{1,4}){1,3}$")
_BOARD = re.compile(
    r"(?:[\w.-]+/)?(?:(?P<kind>blade|leaf|line|spine|fabric|l|s)[\s_-]*(?P<board>\d{1,2}))"
    r"(?:\s*[/_,\s]\s*(?:U|chip\s*)(?P<chip>\d))?\s*[/_,\s]\s*(?:port|p)?[\s_]*(?:(?P<sub>\d)/)?(?P<port>\d{1,3})$",
    re.IGNORECASE,
)
_NVOS = re.compile(r"sw(\d{1,3})p(\d)(?:s(\d))?$", re.IGNORECASE)
_CUMULUS = re.compile(r"swp(\d{1,3})(?:s(\d))?$", re.IGNORECASE)
_ADAPTER = re.compile(r"(\S*[A-Za-z_]\S*?)(?:\s*[/:]\s*|\s+)(?:P|port)?\s*(\d{1,2})$", re.IGNORECASE)
_TWIN = 2
_RATE = re.compile(r"(?:(\d{1,2})x)?(SDR|DDR|QDR|FDR10|FDR|EDR|HDR|NDR|XDR)(\d{2,3})?$", re.IGNORECASE)
_GBPS = re.compile(r"(\d{1,6}(?:\.\d+)?)\s*(?:g|gb|gbe|gbps|gb/s|gbit/s|gbit)?$", re.IGNORECASE)
_TBPS = re.compile(r"(\d{1,2}(?:\.\d+)?)\s*(?:t|tb|tbe|tbps|tb/s|tbit/s|tbit)$", re.IGNORECASE)
_LANES, _MEGABITS = 4, 10_000
_DISTINCT = 1 << 14
"""Spellings that a cache holds: a plan repeats them in most lines."""


@lru_cache(_DISTINCT)
def port_name(cell: str) -> str:
    """Return the name of a port: `10` for `10.0`, `5/2`, `1/5/2`, `sw5p2`, `swp5s1`, `P10`; `L16/U2/20` for a board's.

    Anything else is the name of an adapter, and stays as it is.
    """
    text = " ".join(cell.split())
    return board_of(text) or _of_switch(text) or _of_adapter(text)


@lru_cache(_DISTINCT)
def is_switch_port(cell: str) -> bool:
    """Return whether the spelling is that of a switch's port."""
    text = " ".join(cell.split())
    return bool(board_of(text) or _of_switch(text))


def board_of(text: str) -> str:
    """Return a port of a modular switch: `Blade 16_Port 2/20`, `L16/U2/P20`, `L05 P12`; empty for anything else."""
    match = _BOARD.match(text) if len(text) <= MAX_NAME else None
    if match is None:
        return ""
    kind = "S" if match["kind"].lower() in ("s", "spine", "fabric") else "L"
    return board_port(f"{kind}{match['board']}", int(match["chip"] or match["sub"] or 1), int(match["port"]))


def _of_switch(cell: str) -> str:
    if len(cell) <= MAX_NAME and (caged := _CAGE.match(cell)) and (port := _in_cage(int(caged[1]), int(caged[2]))):
        return str(port)
    text = _PREFIX.sub("", cell)
    for pattern, number in _SPELLINGS:
        match = pattern.match(text)
        found = number(match) if match else 0
        if found:
            return str(found)
    return ""


def _of_parts(match: re.Match[str]) -> int:
    """Return the IB port of `c/p`, `1/n`, `1/c/p`, `c/p/s` or `1/c/p/s`; 0 where the parts fit none of them."""
    parts = [int(part) for part in re.split(r"\D+", match[0])]
    if len(parts) > _TWIN and parts[0] == 1 and (len(parts) > _TWIN + 1 or parts[1] > _TWIN):
        parts = parts[1:]
    cage, *rest = parts
    if all(1 <= part <= _TWIN for part in rest):
        return _in_cage(cage, *rest)
    return rest[0] if cage == 1 and len(rest) == 1 else 0


def _in_cage(cage: int, port: int, split: int = 0) -> int:
    if cage < 1 or not 1 <= port <= _TWIN:
        return 0
    return 4 * (cage - 1) + 2 * (port - 1) + split if split else 2 * (cage - 1) + port


_SPELLINGS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], int]], ...] = (
    (_NUMBER, lambda match: int(match[1])),
    (_PARTS, _of_parts),
    (_NVOS, lambda match: _in_cage(int(match[1]), int(match[2]), int(match[3] or 0))),
    (_CUMULUS, lambda match: _in_cage(int(match[1]), int(match[2]) + 1) if match[2] else int(match[1])),
)


def _of_adapter(text: str) -> str:
    """Return an adapter's name, `mlx5_0`, and its port where that is not the first: `mlx5_0/2`."""
    match = _ADAPTER.match(text) if len(text) <= MAX_NAME else None
    if match is None or not match[1][-1].isdigit():
        return text
    return match[1] if int(match[2]) == 1 else f"{match[1]}/{int(match[2])}"


@lru_cache(_DISTINCT)
def gbps_of(text: str) -> float | None:
    """Return a link rate in Gb/s: `400`, `400G`, `NDR`, `4xNDR`, `HDR100`, `200000` (Mb/s), `1.6T`; None if unknown."""
    if match := _RATE.match(text):
        if match[3]:
            return float(match[3])
        return int(match[1] or _LANES) * LANE_GBPS[match[2].upper()]
    if match := _TBPS.match(text):
        return float(match[1]) * 1000 or None
    if match := _GBPS.match(text):
        number = float(match[1])
        return number / 1000 if number >= _MEGABITS else number or None
    return None
