"""What a fabric's ports, transceivers and switches report of themselves at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.node import Guid

HIGHEST: Mapping[str, int] = {
    "SymbolErrorCounter": 0xFFFF,
    "LinkErrorRecoveryCounter": 0xFF,
    "LinkDownedCounter": 0xFF,
    "PortRcvErrors": 0xFFFF,
    "PortRcvRemotePhysicalErrors": 0xFFFF,
    "PortRcvSwitchRelayErrors": 0xFFFF,
    "PortXmitDiscards": 0xFFFF,
    "PortXmitConstraintErrors": 0xFF,
    "PortRcvConstraintErrors": 0xFF,
    "LocalLinkIntegrityErrors": 0xF,
    "ExcessiveBufferOverrunErrors": 0xF,
    "VL15Dropped": 0xFFFF,
}
"""The error counters of a port, by libibmad's names, and where each stops to count in PortCounters (InfiniBand
Architecture, volume 1, 16.1.3.5); in PortCountersExtended it has 64 bits.
"""
TRAFFIC = ("PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts", "PortXmitWait")
"""Counters of traffic, not of errors; the first two in units of 4 bytes."""


@dataclass(frozen=True, slots=True)
class PortCounters:
    """A port's counters since they were last cleared. `narrow`: those of PortCounters, else 64 bits each."""

    values: Mapping[str, int]
    narrow: bool = True

    def stopped(self, counter: str) -> bool:
        """Return whether the counter stands at its highest value: nothing is added to it any more."""
        highest = HIGHEST.get(counter, 0xFFFFFFFF) if self.narrow else 0xFFFFFFFFFFFFFFFF
        return self.values[counter] == highest


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """A port's own estimate of its bit error rates, in errors per bit; None where it reports none.

    `raw` is before, `effective` after error correction; `symbol` counts what correction could not repair.
    """

    raw: float | None = None
    effective: float | None = None
    symbol: float | None = None


@dataclass(frozen=True, slots=True)
class Transceiver:
    """The cable end or transceiver in a port, as its memory describes it; empty and None where it does not."""

    vendor: str = ""
    part: str = ""
    serial: str = ""
    firmware: str = ""
    length: str = ""
    temperature_c: float | None = None


@dataclass(frozen=True, slots=True)
class Telemetry:
    """One reading of a whole fabric. What is not in a mapping was not read.

    `at`: when, where the reading has it; `taken_s`: seconds within which all ports were read, `at` in their middle, 0
    where that is unknown; `temperatures` (°C) and `firmware` of devices.
    """

    counters: Mapping[PortId, PortCounters] = field(default_factory=dict)
    error_rates: Mapping[PortId, ErrorRates] = field(default_factory=dict)
    transceivers: Mapping[PortId, Transceiver] = field(default_factory=dict)
    temperatures: Mapping[Guid, float] = field(default_factory=dict)
    firmware: Mapping[Guid, str] = field(default_factory=dict)
    at: datetime | None = None
    taken_s: float = 0.0
