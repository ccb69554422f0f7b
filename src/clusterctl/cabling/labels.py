"""Texts for ports and devices as they are labelled, and lists of them in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterctl.fleet.fabric.topology import DeviceKind, Fabric, PortId
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan
from clusterctl.fleet.node import Location
from clusterctl.fleet.plain_numbers import is_number


def qm9700_cage(port: int) -> str:
    """Return the cage label of a port: two ports share an OSFP; port n is in cage ⌈n/2⌉, 1 if odd, 2 if even."""
    return f"{(port + 1) // 2}/{2 - port % 2}"


@dataclass(frozen=True, slots=True)
class PlanLabels:
    """Labels, places and GUIDs for the texts of findings.

    `cages` by port; `qm9700`: switches with QM9700 numbering; `devices`: all planned devices.
    """

    plan: WiringPlan
    cages: Mapping[PortName, str]
    qm9700: frozenset[str]
    guids: Mapping[PortName, str]
    devices: frozenset[str]

    def port(self, port: PortName) -> str:
        """Return a port with its cage, where known."""
        cage = self.cage(port)
        return f"{port} (cage {cage})" if cage else str(port)

    def ports_in(self, ports: Iterable[PortName]) -> str:
        """Return ports of one device, without its name: `cages 6/1 and 6/2 (ports 11 and 12)`, `mlx5_0 and mlx5_1`.

        More than four become ranges: `ports 33–64`.
        """
        ports = sorted(ports, key=_by_number)
        numbers = [port.port for port in ports]
        if not all(is_number(number) for number in numbers):
            return shortened(numbers)
        noun = "ports" if len(ports) > 1 else "port"
        if len(ports) > 4:
            return f"{noun} {ranges(int(number) for number in numbers)}"
        cages = [self.cage(port) for port in ports]
        if not all(cages):
            return f"{noun} {listed(numbers)}"
        return f"{'cages' if len(ports) > 1 else 'cage'} {listed(cages)} ({noun} {listed(numbers)})"

    def here(self, port: PortName) -> str:
        """Return a port without its device: `port 11 (cage 6/1)`, `mlx5_0`."""
        cage = self.cage(port)
        label = f"port {port.port}" if is_number(port.port) else port.port
        return f"{label} (cage {cage})" if cage else label

    def at(self, device: str) -> str:
        """Return the prefix `rack A02 U12 ` of a device; empty where its place is unknown."""
        location = self.plan.locations.get(device)
        return f"{location} " if location else ""

    def beyond(self, device: str, ports: Iterable[PortName]) -> str:
        """Return those of the ports that are of other devices; all of them where there are none."""
        ports = list(ports)
        others = [port for port in ports if port.device != device]
        return shortened([self.port(port) for port in others or ports], 4)

    def rack(self, *devices: str) -> str:
        """Return the rack of the first device with a known place."""
        known = (self.plan.locations[d] for d in devices if d in self.plan.locations)
        return next(known, Location()).rack

    def seen(self, port: PortName) -> str:
        """Return an observed port; with its GUID if the device is not in the plan, because its name proves nothing."""
        guid = self.guids.get(port, "")
        known = port.device in self.devices or guid in port.device
        return str(port) if known else f"{port} (GUID {guid})"

    def cable(self, cable: PlannedCable) -> str:
        """Return a cable with serial and length, where known."""
        length = f"{cable.length_m:g} m" if cable.length_m else ""
        serial = f"serial {cable.serial}" if cable.serial else ""
        known = ", ".join(filter(None, (serial, length)))
        return f"the cable ({known})" if known else "the cable"

    def cage(self, port: PortName) -> str:
        """Return the label at the port; empty where unknown."""
        if port in self.cages:
            return self.cages[port]
        return qm9700_cage(int(port.port)) if port.device in self.qm9700 and is_number(port.port) else ""


def plan_labels(plan: WiringPlan, fabric: Fabric, names: Mapping[PortId, PortName]) -> PlanLabels:
    """Return the labels for a plan and the names of the observed ports."""
    labelled = {
        name.device
        for port, name in names.items()
        if fabric.devices[port.guid].kind is DeviceKind.SWITCH and "QM97" in fabric.devices[port.guid].description
    }
    return PlanLabels(
        plan=plan,
        cages={cable.labelled: cable.cage for cable in plan.cables if cable.cage},
        qm9700=frozenset(labelled),
        guids={name: str(port.guid) for port, name in names.items()},
        devices=frozenset(end.device for cable in plan.cables for end in (cable.source, cable.destination)),
    )


def listed(items: Iterable[str]) -> str:
    """Return items as text: `a`, `a and b`, `a, b and c`."""
    *head, last = items
    return f"{', '.join(head)} and {last}" if head else last


def shortened(items: Iterable[str], limit: int = 6) -> str:
    """Return at most `limit` items as text, and the number of the others."""
    items = list(items)
    return listed(items) if len(items) <= limit else f"{', '.join(items[:limit])} and {len(items) - limit} more"


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as ranges: `1–4, 7 and 9–12`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return listed(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _by_number(port: PortName) -> tuple[int, str]:
    return (port.number, port.port)
