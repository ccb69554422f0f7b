"""MAAS's calls on machines, typed. No decision is made here."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from clusterctl.edges.maas.api import FORBIDDEN, Form, MaasAnswer, MaasApi, MaasRefusedError
from clusterctl.fleet.finding import Evidence, Observed
from clusterctl.fleet.node import Mac
from clusterctl.formats.maas import machines as formats
from clusterctl.formats.maas.machines import MaasBlockDevice, MaasEvent, MaasMachine, PowerParameters
from clusterctl.formats.maas.region import is_admin, is_local, racks
from clusterctl.ports import BmcAddress, Deadline

QUERY_BYTES = 7000
"""Of one request's query: MAAS's nginx takes request lines of 8 KiB (its default; MAAS's template sets none). That is
700 machines by id, 400 by name or 175 MACs.
"""
LIST_SECONDS = 300.0
"""MAAS builds a list machine by machine, and its nginx waits 900 s for it (regiond.nginx.conf.template)."""
EVENTS_AT_ONCE = 50
SOURCE_CHARS = 120
AGENT = "clusterctl"
RACKD, DISCONNECTED = "rackd", ("dead", "off")
"""The service by which a rack controller reports to the region, and its states where it does not."""


@dataclass(frozen=True, slots=True)
class MachineListing:
    """Machines by their system id, each with its own evidence; `rest` is the evidence for those that were not found."""

    machines: Mapping[str, MaasMachine]
    evidence: Mapping[str, Evidence]
    rest: tuple[Evidence, ...] = ()

    def __or__(self, other: MachineListing) -> MachineListing:
        return MachineListing(
            {**self.machines, **other.machines}, {**self.evidence, **other.evidence}, other.rest or self.rest
        )

    def of(self, machine: MaasMachine | None) -> tuple[Evidence, ...]:
        """Return the evidence of a machine; for None, that of the last search."""
        return self.rest if machine is None else (self.evidence[machine.system_id],)


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """The user of our key. Not `local`: MAAS takes users and their rights from another service."""

    name: str
    admin: bool
    local: bool


class Machines:
    """One method per call."""

    def __init__(self, api: MaasApi) -> None:
        self._api = api

    def whoami(self, deadline: Deadline) -> KeyOwner:
        """Return the user of our key."""
        body = self._api.get("users/", [("op", "whoami")], deadline).body
        return KeyOwner(formats.user_name(body), is_admin(body), is_local(body))

    def administers(self, system_id: str, deadline: Deadline) -> bool:
        """Return whether our key may administer the machine. The answer holds a password, and is dropped."""
        try:
            self._api.get(f"machines/{system_id}/", [("op", "power_parameters")], deadline)
        except MaasRefusedError as error:
            if error.status == FORBIDDEN:
                return False
            raise
        return True

    def first_of_pool(self, pool: str, deadline: Deadline) -> MaasMachine | None:
        """Return a readable machine of the pool; None where it holds none that our key may see."""
        listed = _listing(self._api.get("machines/", [("pool", pool)], deadline, seconds=LIST_SECONDS))
        return next((machine for machine in listed.machines.values() if not machine.unreadable), None)

    def by_ids(self, system_ids: Iterable[str], deadline: Deadline) -> MachineListing:
        """Return all machines of these ids that still exist: one list call for 700."""
        return self._listed("id", system_ids, deadline)

    def by_macs(self, macs: Iterable[Mac], deadline: Deadline) -> MachineListing:
        """Return all machines that own one of `macs`: one list call for 175 MACs."""
        return self._listed("mac_address", macs, deadline)

    def by_hostnames(self, hostnames: Iterable[str], deadline: Deadline) -> MachineListing:
        """Return all machines with one of these names: one list call for 400."""
        return self._listed("hostname", hostnames, deadline)

    def _listed(self, field: str, values: Iterable[str], deadline: Deadline) -> MachineListing:
        found = MachineListing({}, {})
        for some in _batches(field, sorted(set(values))):
            query = [(field, value) for value in some]
            found |= _listing(self._api.get("machines/", query, deadline, seconds=LIST_SECONDS))
        return found

    def get(self, system_id: str, deadline: Deadline) -> Observed[MaasMachine]:
        return _machine(self._api.get(f"machines/{system_id}/", (), deadline))

    def enrol(self, form: Form, bmc: BmcAddress, deadline: Deadline) -> Observed[MaasMachine]:
        return _machine(self._api.post("machines/", "", form, deadline, secrets=[bmc.password]))

    def update(self, system_id: str, form: Form, bmc: BmcAddress, deadline: Deadline) -> Observed[MaasMachine]:
        return _machine(self._api.put(f"machines/{system_id}/", form, deadline, secrets=[bmc.password]))

    def power_parameters(self, system_id: str, deadline: Deadline) -> PowerParameters:
        """Return how MAAS logs in to its BMC. MAAS shows the password: the answer is no evidence to keep."""
        query = [("op", "power_parameters")]
        return formats.power_parameters(self._api.get(f"machines/{system_id}/", query, deadline).body)

    def commission(self, system_id: str, deadline: Deadline) -> Observed[MaasMachine]:
        """Begin the inventory: MAAS makes no user of its own on the BMC and runs no tests (ours come later)."""
        form = [("skip_bmc_config", "1"), ("testing_scripts", "none")]
        return _machine(self._api.post(f"machines/{system_id}/", "commission", form, deadline))

    def no_rack_connected(self, deadline: Deadline) -> bool:
        """Return whether every rack controller that MAAS knows is known to be disconnected from the region."""
        states = [rack.services.get(RACKD) for rack in racks(self._api.get("rackcontrollers/", (), deadline).body)]
        return bool(states) and all(state in DISCONNECTED for state in states)

    def block_devices(self, system_id: str, deadline: Deadline) -> tuple[MaasBlockDevice, ...]:
        return formats.block_devices(self._api.get(f"nodes/{system_id}/blockdevices/", (), deadline).body)

    def set_boot_disk(self, system_id: str, device: int, deadline: Deadline) -> None:
        self._api.post(f"nodes/{system_id}/blockdevices/{device}/", "set_boot_disk", (), deadline)

    def lay_flat(self, system_id: str, device: int, deadline: Deadline) -> Observed[MaasMachine]:
        """Lay one root filesystem on that drive. `root_device` is the block device's id: MAAS takes no path or name."""
        form = [("storage_layout", "flat"), ("root_device", str(device))]
        return _machine(self._api.post(f"machines/{system_id}/", "set_storage_layout", form, deadline))

    def tag(self, name: str, system_id: str, deadline: Deadline) -> int:
        """Put a tag on a machine. Return the number of machines that got it: 0 also for an id that MAAS does not know
        (recorded). MAAS answers 404 where there is no such tag.
        """
        form = [("add", system_id)]
        return formats.tagged(self._api.post(f"tags/{name}/", "update_nodes", form, deadline).body)

    def create_tag(self, name: str, deadline: Deadline) -> None:
        form = [("name", name), ("comment", f"by {AGENT}")]
        self._api.post("tags/", "", form, deadline)

    def allocate(self, system_id: str, deadline: Deadline) -> Observed[MaasMachine]:
        form = [("system_id", system_id), ("agent_name", AGENT)]
        return _machine(self._api.post("machines/", "allocate", form, deadline))

    def deploy(self, system_id: str, series: str, user_data: str, deadline: Deadline) -> Observed[MaasMachine]:
        """Begin to deploy, with `user_data` as cloud-init shall see it. MAAS may wait for the BMC before it answers."""
        encoded = base64.b64encode(user_data.encode()).decode()
        form = [("distro_series", series), ("user_data", encoded)]
        return _machine(self._api.post(f"machines/{system_id}/", "deploy", form, deadline, secrets=[encoded]))

    def release(self, system_id: str, deadline: Deadline) -> Observed[MaasMachine]:
        return _machine(self._api.post(f"machines/{system_id}/", "release", (), deadline))

    def abort(self, system_id: str, deadline: Deadline) -> Observed[MaasMachine]:
        """End commissioning, testing, deploying or erasing, and switch the machine off."""
        return _machine(self._api.post(f"machines/{system_id}/", "abort", (), deadline))

    def erase(self, system_id: str, deadline: Deadline) -> Observed[MaasMachine]:
        """Release with all drives erased: by the drives' own secure erase where they have one, else overwritten."""
        form = [("erase", "true"), ("secure_erase", "true")]
        return _machine(self._api.post(f"machines/{system_id}/", "release", form, deadline))

    def allocated_by(self, agent: str, system_id: str, deadline: Deadline) -> bool:
        """Return whether the machine was allocated with this `agent_name`. MAAS shows it nowhere, but filters by it."""
        query = [("id", system_id), ("agent_name", agent)]
        found = formats.machines(self._api.get("machines/", query, deadline).body)
        return any(machine.system_id == system_id for machine in found)

    def install_log(self, system_id: str, deadline: Deadline) -> str:
        """Return the log of the machine's last installation."""
        query = [("include_output", "1"), ("filters", formats.INSTALL_LOG)]
        answer = self._api.get(f"nodes/{system_id}/results/current-installation/", query, deadline)
        return formats.install_log(answer.body)

    def failures(
        self, system_ids: Iterable[str], deadline: Deadline, *, after: int = 0
    ) -> Mapping[str, tuple[MaasEvent, bool]]:
        """Return `formats.failure` of each machine, by system id, where there is one."""
        logs = self._events(system_ids, deadline)
        found = {system_id: formats.failure(events, after) for system_id, events in logs.items()}
        return {system_id: failure for system_id, failure in found.items() if failure is not None}

    def newest_events(self, types: Mapping[str, str], deadline: Deadline) -> Mapping[str, MaasEvent]:
        """Return the newest event of the named type, by system id, where it is among each machine's last ones."""
        logs = self._events(types, deadline)
        named = {node: next((one for one in logs[node] if one.type == kind), None) for node, kind in types.items()}
        return {system_id: event for system_id, event in named.items() if event is not None}

    def newest_event(self, deadline: Deadline) -> MaasEvent | None:
        """Return the newest event of all, of whatever machine and level."""
        query = [("op", "query"), ("level", "DEBUG"), ("limit", "1")]
        return next(iter(formats.events(self._api.get("events/", query, deadline).body)), None)

    def newest_of(self, system_id: str, deadline: Deadline) -> int:
        """Return the number of the machine's newest event; 0 where it has none."""
        query = [("op", "query"), ("level", "DEBUG"), ("limit", "1"), ("id", system_id)]
        found = formats.events(self._api.get("events/", query, deadline).body)
        return found[0].id if found else 0

    def _events(self, system_ids: Iterable[str], deadline: Deadline) -> dict[str, list[MaasEvent]]:
        """Return the machines' last events but the debug ones, newest first."""
        ids = sorted(system_ids)
        found: dict[str, list[MaasEvent]] = {system_id: [] for system_id in ids}
        for start in range(0, len(ids), EVENTS_AT_ONCE):
            some = ids[start : start + EVENTS_AT_ONCE]
            query = [("op", "query"), ("level", "INFO"), ("limit", "1000"), *(("id", item) for item in some)]
            for event in formats.events(self._api.get("events/", query, deadline).body):
                found.setdefault(event.node, []).append(event)
        return {node: sorted(events, key=lambda one: -one.id) for node, events in found.items()}


def _machine(answer: MaasAnswer) -> Observed[MaasMachine]:
    return Observed(formats.machine(answer.body), (answer.evidence,))


def _listing(answer: MaasAnswer) -> MachineListing:
    """Return the listed machines. Each machine's part of the answer is its evidence: it is not kept with the others."""
    found = formats.machines(answer.body)
    documents = json.loads(answer.evidence.content)
    evidence = {
        machine.system_id: replace(
            answer.evidence,
            source=f"{answer.evidence.source[:SOURCE_CHARS]}: {machine.system_id} of {len(found)} machines",
            content=json.dumps(part).encode(),
        )
        for machine, part in zip(found, documents, strict=True)
    }
    rest = () if found else (answer.evidence,)
    return MachineListing({machine.system_id: machine for machine in found}, evidence, rest)


def _batches(field: str, values: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the values in batches, as many as one query takes."""
    some: list[str] = []
    length = 0
    for value in values:
        own = len(f"&{field}={quote(value, safe='')}")
        if some and length + own > QUERY_BYTES:
            yield some
            some, length = [], 0
        some.append(value)
        length += own
    if some:
        yield some
