"""Fleets updated half-way: of each model, the versions that run, and the devices that are the odd ones out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from clusterctl.fleet.fabric import DeviceKind, Fabric, PortId
from clusterctl.fleet.node import Guid
from clusterctl.fleet.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class MixedFirmware:
    """`odd`: names of those that do not run `usual` (empty where no version is the usual one: then all are named)."""

    model: str
    versions: tuple[tuple[str, int], ...]
    usual: str
    odd: tuple[str, ...]


def mixed(
    fabric: Fabric, telemetry: Telemetry, device: Callable[[Guid], str], port: Callable[[PortId], str], most: float
) -> Iterator[MixedFirmware]:
    """Models of which more than `most` versions run."""
    classes: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for guid, version in telemetry.firmware.items():
        known = fabric.devices.get(guid)
        if known is not None and not known.is_aggregation:
            word = "switches" if known.kind is DeviceKind.SWITCH else "adapters"
            model = f" (device 0x{known.device_id:x})" if known.device_id else ""
            classes[word + model].append((device(guid), version))
    for end, transceiver in telemetry.transceivers.items():
        if transceiver.firmware and transceiver.part:
            classes[f"transceivers {transceiver.part}"].append((port(end), transceiver.firmware))
    for model, members in sorted(classes.items()):
        if len({version for _, version in members}) > most:
            yield _judge(model, members)


def _judge(model: str, members: Iterable[tuple[str, str]]) -> MixedFirmware:
    by_version: dict[str, list[str]] = defaultdict(list)
    for name, version in members:
        by_version[version].append(name)
    counts = sorted(((version, len(names)) for version, names in by_version.items()), key=lambda v: (-v[1], v[0]))
    usual = counts[0][0] if counts[0][1] > counts[1][1] else ""
    odd = sorted({name for version, names in by_version.items() if version != usual for name in names})
    return MixedFirmware(model, tuple(counts), usual, tuple(odd))
