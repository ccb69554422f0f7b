"""The parts of the lab's MAAS, and how one request becomes one answer."""

from __future__ import annotations

import inspect
from typing import Any

from multidict import MultiDict

from clusterctl_lab.emulators.maas import (
    enrolment,
    routes_catalogue,
    routes_machine,
    routes_machines,
    routes_nodes,
    routes_region,
    routes_states,
)
from clusterctl_lab.emulators.maas.bmc import PowerDriver
from clusterctl_lab.emulators.maas.boot import Boot
from clusterctl_lab.emulators.maas.call import PREFIX, Call, Routes
from clusterctl_lab.emulators.maas.faults import Faults
from clusterctl_lab.emulators.maas.images import Images
from clusterctl_lab.emulators.maas.lifecycle import Lifecycle
from clusterctl_lab.emulators.maas.model import Node, Pool, Store
from clusterctl_lab.emulators.maas.oauth import Keys
from clusterctl_lab.emulators.maas.refusal import RefusedError, forbidden, no_such
from clusterctl_lab.emulators.maas.region import SETTINGS
from clusterctl_lab.emulators.maas.render import machine
from clusterctl_lab.maas_quirk import MaasQuirk
from clusterctl_lab.world import World

RESEARCH = "research"


class Service:
    """One MAAS region with its rack. It switches machines through `power` only, and receives their events through
    `boot`.
    """

    def __init__(self, world: World, keys: Keys, power: PowerDriver) -> None:
        self.world = world
        self.keys = keys
        self.store = Store()
        self.faults = Faults()
        self.images = Images()
        self.settings = dict(SETTINGS)
        self.lifecycle = Lifecycle(world, self.store, power, self.faults)
        self.boot = Boot(self.lifecycle)
        self._routes = Routes()
        for module in (routes_machines, routes_machine, routes_states, routes_nodes, routes_catalogue, routes_region):
            self._routes.include(module.routes)

    async def answer(self, call: Call) -> Any:
        """What the operation returns: a JSON value, `Text`, or None for no content. Raises `RefusedError`."""
        self._apply_quirks()
        operation = self._routes.find(call)
        formats = call.query.getall("format", [])
        if formats and formats != ["json"]:
            raise RefusedError(400, f"Invalid output format specified '{formats[0]}'.")
        if operation.admin and not (call.admin and self._has_rights(call)):
            raise forbidden()
        result = operation.handler(call)
        return await result if inspect.isawaitable(result) else result

    def _has_rights(self, call: Call) -> bool:
        """Return whether RBAC gives the user rights on the pool of the machine that the request is about."""
        node = self.store.nodes.get(call.args.get("system_id", ""))
        without = {one.pool for one in self.store.nodes.values() if self._lacks_rights(one)}
        return node is None or node.pool not in without

    def _lacks_rights(self, node: Node) -> bool:
        return MaasQuirk.NO_POOL_RIGHTS in self.lifecycle.quirks(node)

    def answers_html(self, call: Call) -> bool:
        """Whether a quirk answers this write with a page."""
        system_id = call.path.removeprefix(f"{PREFIX}/machines/").strip("/")
        node = self.store.nodes.get(system_id)
        return call.method != "GET" and node is not None and MaasQuirk.HTML_ERRORS in self.lifecycle.quirks(node)

    def _apply_quirks(self) -> None:
        """Let the store show the quirks that are facts about it."""
        self.faults.rack_lost = self.lifecycle.anywhere(MaasQuirk.NO_RACK)
        for each in self.world.machines.values():
            known = self.store.by_mac(each.boot_mac)
            if MaasQuirk.OTHER_POOL in each.maas_quirks and known is None:
                self._enlist(each.boot_mac)
        nodes = self.store.nodes.values()
        self.store.hostile = {n.system_id for n in nodes if MaasQuirk.HOSTILE_EVENTS in self.lifecycle.quirks(n)}

    def _enlist(self, mac: str) -> None:
        """Enlist a machine that has booted from the network by itself and that an operator has put into
        another pool.
        """
        pools = self.store.pools
        pools.setdefault(RESEARCH, Pool(self.store.next_id("pool"), RESEARCH, ""))
        fields = MultiDict({"architecture": enrolment.ARCHITECTURE, "mac_addresses": mac})
        enrolment.create(self.store, fields).pool = RESEARCH

    def node(self, call: Call) -> Node:
        """The machine that the path names, or 404."""
        node = self.store.nodes.get(call.arg("system_id"))
        if node is None:
            raise no_such("Machine")
        return node

    def named(self, call: Call) -> str:
        """Return the machine of the lab that a request is about; empty where it is about none."""
        system_id = call.args.get("system_id") or call.form.get("system_id")
        node = self.store.nodes.get(system_id or "")
        macs = {interface.mac for interface in node.interfaces} if node else set(call.form.getall("mac_addresses", []))
        return next((machine.name for machine in self.world.machines.values() if machine.boot_mac in macs), "")

    def describe(self, node: Node) -> dict[str, Any]:
        return machine(node, self.store, self.world.layout)
