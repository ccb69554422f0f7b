"""Limits of links, transceivers and the fabric as a whole, each with its unit and its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.fleet.finding import Digest

UNITS: Mapping[str, str] = {
    "broken_links_max": "%",
    "buffer_overruns_max": "per interval",
    "burn_both_ways_min": "%",
    "burn_deviations_max": "deviations",
    "burn_goal": "%",
    "burn_loaded_min": "%",
    "burn_one_way_min": "%",
    "effective_ber_max": "errors/bit",
    "firmware_versions_max": "versions",
    "integrity_errors_max": "per interval",
    "link_downs_max": "per interval",
    "link_recoveries_max": "per minute",
    "receive_errors_max": "per second",
    "symbol_ber_goal": "errors/bit",
    "symbol_ber_max": "errors/bit",
    "symbol_errors_goal": "errors",
    "symbol_errors_max": "errors",
    "temperature_max": "°C",
    "temperature_rise_max": "°C",
    "transmit_discards_max": "per minute",
}
"""All limits that there are, and the unit that each is in. A file has every one of them."""


@dataclass(frozen=True, slots=True)
class FabricLimit:
    value: float
    unit: str
    source: str

    def __str__(self) -> str:
        return f"{self.value:g} {self.unit}"


@dataclass(frozen=True, slots=True)
class FabricLimits:
    """One file of limits. `digest` covers every figure, so that a verdict names the limits that it used."""

    name: str
    digest: Digest
    limits: Mapping[str, FabricLimit]

    def __getitem__(self, name: str) -> FabricLimit:
        return self.limits[name]

    def value(self, name: str) -> float:
        return self.limits[name].value
