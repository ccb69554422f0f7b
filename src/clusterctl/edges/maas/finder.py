"""Finds the site's machines in MAAS, with as few requests as may be."""

from __future__ import annotations

from collections.abc import Sequence

from clusterctl.edges.maas import matching
from clusterctl.edges.maas.machines import Listing, Machines
from clusterctl.fleet.finding import Observed
from clusterctl.formats.maas.machines import MaasMachine
from clusterctl.ports import Deadline, InstallTarget


class Finder:
    """Remembers the ids of the machines that were found. Safe to use from many threads, for different machines."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self._ids: dict[str, str] = {}

    def remember(self, target: InstallTarget, machine: MaasMachine) -> None:
        self._ids[target.name] = machine.system_id

    def find(self, target: InstallTarget, deadline: Deadline) -> Observed[MaasMachine] | None:
        """By MAC and by name: where an act follows, every machine that could be it counts."""
        listed = self._by_macs([target], deadline) | self._machines.by_hostnames([target.name], deadline)
        machine = matching.ours(listed.machines.values(), target)
        if machine is None:
            return None
        self.remember(target, machine)
        return Observed(machine, listed.of(machine))

    def listed(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Listing:
        """By the ids that are known; else, or where MAAS knows the id no more, by MAC; else by name."""
        ids = [self._ids[target.name] for target in targets if target.name in self._ids]
        listed = self._machines.by_ids(ids, deadline)
        sought = [target for target in targets if self._ids.get(target.name) not in listed.machines]
        if sought:
            listed |= self._by_macs(sought, deadline)
        macs = {mac for machine in listed.machines.values() for mac in machine.macs}
        names = [target.name for target in sought if not macs & set(target.macs)]
        return listed | self._machines.by_hostnames(names, deadline) if names else listed

    def _by_macs(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Listing:
        return self._machines.by_macs([mac for target in targets for mac in target.macs], deadline)
