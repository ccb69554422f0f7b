"""What a BMC says of the machine's parts by kind: Dell's and HPE's roll-ups, and the summaries of the standard.

Dell: `Oem.Dell.DellSystem`, fields `…RollupStatus` (OK, Degraded, Error). HPE: `Oem.Hpe.AggregateHealthStatus`, an
object with a Status for each kind. DMTF: `MemorySummary.Status` and `ProcessorSummary.Status`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from clusterctl.fleet.node import Rollup
from clusterctl.formats.redfish.resource import Resource
from clusterctl.formats.redfish.system import host_system
from clusterctl.formats.redfish.tree import Tree

_DELL, _HPE = ("Oem", "Dell", "DellSystem"), ("Oem", "Hpe", "AggregateHealthStatus")
_SUFFIX = "RollupStatus"
_WORDS = {"Degraded": "Warning", "Error": "Critical", "Warning": "Warning", "Critical": "Critical"}
"""What is not well, in DMTF's words; all else (OK, Unknown, null) tells nothing bad."""


def rollups(tree: Tree) -> tuple[Rollup, ...]:
    """The kinds of parts that are not well, each once, by name."""
    host = host_system(tree)
    told = {name: _WORDS[word] for name, word in _told(host) if isinstance(word, str) and word in _WORDS}
    return tuple(Rollup(name, told[name]) for name in sorted(told))


def _told(host: Resource) -> Iterator[tuple[str, Any]]:
    for name in ("Memory", "Processor"):
        keys = (f"{name}Summary", "Status")
        yield name, host.text(*keys, "HealthRollup") or host.text(*keys, "Health")
    for key, value in _object(host, _DELL).items():
        if key.endswith(_SUFFIX) and key != f"Current{_SUFFIX}":
            yield key.removesuffix(_SUFFIX), value
    for key in _object(host, _HPE):
        if isinstance(host.value(*_HPE, key), Mapping):
            yield key, host.text(*_HPE, key, "Status", "Health")


def _object(host: Resource, keys: tuple[str, ...]) -> Mapping[str, Any]:
    found = host.value(*keys)
    return found if isinstance(found, Mapping) else {}
