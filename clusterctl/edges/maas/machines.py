"""MAAS's calls on machines, typed. Nothing is decided here."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence

from clusterctl.edges.maas.api import Answer, Form, MaasApi
from clusterctl.fleet.finding import Evidence, Observed
from clusterctl.fleet.node import Mac
from clusterctl.formats import maas as formats
from clusterctl.formats.maas import BlockDevice, MaasEvent, MaasMachine, PowerParameters
from clusterctl.ports import BmcAddress, Deadline

VALUES_PER_LIST = 150  # a MAC takes 40 bytes once escaped: stays below the 8 KiB request line that nginx takes
AGENT = "clusterctl"


class Machines:
    """One method per call."""

    def __init__(self, api: MaasApi) -> None:
        self._api = api

    def whoami(self, deadline: Deadline) -> str:
        """The user whose key we use."""
        return formats.user_name(self._api.get("users/", [("op", "whoami")], deadline).body)

    def by_macs(self, macs: Sequence[Mac], deadline: Deadline) -> Observed[tuple[MaasMachine, ...]]:
        """All machines that own one of `macs`: one list call, a few where there are many hundred MACs."""
        return self._listed("mac_address", macs, deadline)

    def by_hostnames(self, hostnames: Sequence[str], deadline: Deadline) -> Observed[tuple[MaasMachine, ...]]:
        """All machines with one of these names."""
        return self._listed("hostname", hostnames, deadline)

    def _listed(self, field: str, values: Sequence[str], deadline: Deadline) -> Observed[tuple[MaasMachine, ...]]:
        found: dict[str, MaasMachine] = {}
        evidence: list[Evidence] = []
        for some in _batches(sorted(set(values))):
            answer = self._api.get("machines/", [(field, value) for value in some], deadline)
            evidence.append(answer.evidence)
            found.update({item.system_id: item for item in formats.machines(answer.body)})
        return Observed(tuple(found.values()), tuple(evidence))

    def get(self, system_id: str, deadline: Deadline) -> Observed[MaasMachine]:
        return _machine(self._api.get(f"machines/{system_id}/", (), deadline))

    def enrol(self, form: Form, bmc: BmcAddress, deadline: Deadline) -> Observed[MaasMachine]:
        return _machine(self._api.post("machines/", "", form, deadline, secrets=[bmc.password]))

    def update(self, system_id: str, form: Form, bmc: BmcAddress, deadline: Deadline) -> Observed[MaasMachine]:
        return _machine(self._api.put(f"machines/{system_id}/", form, deadline, secrets=[bmc.password]))

    def power_parameters(self, system_id: str, deadline: Deadline) -> PowerParameters:
        """How MAAS logs in to its BMC. MAAS shows the password: the answer is no evidence to keep."""
        query = [("op", "power_parameters")]
        return formats.power_parameters(self._api.get(f"machines/{system_id}/", query, deadline).body)

    def commission(self, system_id: str, deadline: Deadline) -> Observed[MaasMachine]:
        """Inventory it: MAAS makes no user of its own on the BMC and runs no tests of its own (ours come later)."""
        form = [("skip_bmc_config", "1"), ("testing_scripts", "none")]
        return _machine(self._api.post(f"machines/{system_id}/", "commission", form, deadline))

    def block_devices(self, system_id: str, deadline: Deadline) -> tuple[BlockDevice, ...]:
        return formats.block_devices(self._api.get(f"nodes/{system_id}/blockdevices/", (), deadline).body)

    def set_boot_disk(self, system_id: str, device: int, deadline: Deadline) -> None:
        self._api.post(f"nodes/{system_id}/blockdevices/{device}/", "set_boot_disk", (), deadline)

    def lay_flat(self, system_id: str, device: int, deadline: Deadline) -> Observed[MaasMachine]:
        """One root filesystem on that drive. `root_device` is the block device's id: MAAS takes no path or name."""
        form = [("storage_layout", "flat"), ("root_device", str(device))]
        return _machine(self._api.post(f"machines/{system_id}/", "set_storage_layout", form, deadline))

    def allocate(self, system_id: str, deadline: Deadline) -> Observed[MaasMachine]:
        form = [("system_id", system_id), ("agent_name", AGENT)]
        return _machine(self._api.post("machines/", "allocate", form, deadline))

    def deploy(self, system_id: str, series: str, user_data: str, deadline: Deadline) -> Observed[MaasMachine]:
        """`user_data` as cloud-init shall see it. MAAS answers at once; the work goes on."""
        encoded = base64.b64encode(user_data.encode()).decode()
        form = [("distro_series", series), ("user_data", encoded)]
        return _machine(self._api.post(f"machines/{system_id}/", "deploy", form, deadline, secrets=[encoded]))

    def release(self, system_id: str, deadline: Deadline) -> Observed[MaasMachine]:
        return _machine(self._api.post(f"machines/{system_id}/", "release", (), deadline))

    def erase(self, system_id: str, deadline: Deadline) -> Observed[MaasMachine]:
        """Release with all drives erased: by the drives' own secure erase where they have one, else overwritten."""
        form = [("erase", "true"), ("secure_erase", "true")]
        return _machine(self._api.post(f"machines/{system_id}/", "release", form, deadline))

    def last_errors(self, system_ids: Iterable[str], deadline: Deadline) -> Mapping[str, MaasEvent]:
        """The newest error of each machine, by system id."""
        query = [("op", "query"), ("level", "ERROR"), ("limit", "1000"), *(("id", item) for item in system_ids)]
        newest: dict[str, MaasEvent] = {}
        for event in formats.events(self._api.get("events/", query, deadline).body):
            if event.node not in newest or newest[event.node].id < event.id:
                newest[event.node] = event
        return newest


def _machine(answer: Answer) -> Observed[MaasMachine]:
    return Observed(formats.machine(answer.body), (answer.evidence,))


def _batches(values: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(values), VALUES_PER_LIST):
        yield values[start : start + VALUES_PER_LIST]
