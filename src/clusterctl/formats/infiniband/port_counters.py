"""Error counters of a node's InfiniBand ports, each read twice: the document of the node's built-in `port-counters`.

It has perfquery(8)'s output of each port (infiniband-diags): PortCountersExtended of the InfiniBand specification with
64 bits, or PortCounters (volume 1, 16.1.3.5), which stop at a low maximum until they are cleared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError

_AGE = re.compile(r"^=== up (?P<seconds>\d+(?:\.\d+)?)$")
_SAMPLE = re.compile(r"^=== (?P<name>\S+) at (?P<at>\d+(?:\.\d+)?) exit (?P<exit>-?\d+)$")
_COUNTER = re.compile(r"^(?P<name>[A-Z][A-Za-z0-9]+):\.*(?P<value>\d{1,20})$")
_WHERE = "port-counters"
_EXTENDED = re.compile(r"^# Port extended counters:")
HIGHEST: Mapping[str, int] = {
    "SymbolErrorCounter": 0xFFFF,
    "LinkErrorRecoveryCounter": 0xFF,
    "LinkDownedCounter": 0xFF,
    "PortRcvErrors": 0xFFFF,
    "PortXmitDiscards": 0xFFFF,
    "LocalLinkIntegrityErrors": 0xF,
    "ExcessiveBufferOverrunErrors": 0xF,
}
"""The judged counters, and the maximum of each where it is not an extended one."""
REQUIRED = ("SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter", "PortRcvErrors")
"""Each port has them; a port in Ethernet mode may lack the others."""
_NIBBLE = 0xF
"""The plain counters of four bits are full on healthy ports since their bring-up: only extended ones are judged."""


@dataclass(frozen=True, slots=True)
class CounterSample:
    """One reading of a port; `at` in seconds of a monotonic clock; `extended`: counters of 64 bits."""

    at: float
    counters: Mapping[str, int]
    extended: bool

    def stopped(self, counter: str) -> bool:
        """Return whether the counter is at its maximum, so that it counts no further."""
        return not self.extended and self.counters[counter] >= HIGHEST[counter]


@dataclass(frozen=True, slots=True)
class PortCounters:
    """A port's two readings. `error_output`: perfquery's error output where they failed, else empty."""

    first: CounterSample | None
    last: CounterSample | None
    error_output: str = ""


@dataclass(frozen=True, slots=True)
class CounterDocument:
    """Counters by adapter; `up`: seconds since the node booted."""

    up: float
    ports: Mapping[str, PortCounters]


def parse_port_counters(text: str) -> CounterDocument:
    """Return the document. Raises `ParseError` for other or truncated text, or where a counter is missing."""
    head, *rest = text.splitlines() or [""]
    age = _AGE.match(head)
    if age is None:
        raise ParseError("no line with the node's uptime", where=_WHERE)
    samples: dict[str, list[tuple[re.Match[str], list[str]]]] = {}
    lines: list[str] = []
    for line in rest:
        if match := _SAMPLE.match(line):
            lines = []
            samples.setdefault(match["name"], []).append((match, lines))
        else:
            lines.append(line)
    return CounterDocument(float(age["seconds"]), {name: _port(name, found) for name, found in samples.items()})


def _port(name: str, samples: list[tuple[re.Match[str], list[str]]]) -> PortCounters:
    if len(samples) != 2:
        raise ParseError(f"{name} was read {len(samples)} times, not twice: output cut off", where=_WHERE)
    for head, lines in samples:
        if head["exit"] != "0":
            printed = [line.strip() for line in lines if line.strip()]
            return PortCounters(
                None, None, printed[-1][:200] if printed else f"perfquery failed with exit code {head['exit']}"
            )
    first, last = (_sample(name, float(head["at"]), lines) for head, lines in samples)
    if last.at <= first.at:
        raise ParseError(f"{name}'s second reading is not after its first", where=_WHERE)
    return PortCounters(first, last)


def _counters(name: str, lines: list[str]) -> dict[str, int]:
    found = {match["name"]: int(match["value"]) for match in map(_COUNTER.match, lines) if match}
    for counter in REQUIRED:
        if counter not in found:
            raise ParseError(f"{name} lacks the counter {counter}", where=_WHERE)
    return found


def _sample(name: str, at: float, lines: list[str]) -> CounterSample:
    found = _counters(name, lines)
    extended = any(_EXTENDED.match(line) for line in lines)
    judged = [counter for counter, most in HIGHEST.items() if counter in found and (extended or most > _NIBBLE)]
    return CounterSample(at, {counter: found[counter] for counter in judged}, extended)
