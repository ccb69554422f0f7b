"""Situations of an install through MAAS, played against the lab's MAAS with the real client, step and BMC client.

The table is data/maas_situations.yml; its head explains the fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import stamina
import yaml

from clusterctl.edges.journal import SqlJournal
from clusterctl.edges.maas import MaasInstaller
from clusterctl.edges.maas.api import MaasApi
from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Observed, Verdict
from clusterctl.fleet.node import Drive, Inventory, Mac, Nic, NodeId, Serial
from clusterctl.ports import Deadline, InstallState, InstallStatus, InstallTarget
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.step import StepOutcome
from clusterctl.steps.install.confirm import HostAccess
from clusterctl.steps.install.job import INSTALLERS_NETWORK
from clusterctl.steps.install.step import Install, InstallServices
from clusterctl_lab.emulators.maas import Failure
from clusterctl_lab.emulators.maas.model import Node, Partition, Pool
from clusterctl_lab.emulators.maas.status import Status
from clusterctl_lab.emulators.maas.storage import clear, lay_flat
from clusterctl_lab.fault_injection import BMC_QUIRKS, MAAS_QUIRKS, inject_all
from tests.edges.maas.kit import BMC_PASSWORD, PUBLIC, Lab, UtcClock, until
from tests.edges.redfish.conftest import QUICK
from tests.events import advances, new_event
from tests.steps.fakes import FakeShell, FixedClock

HERE = Path(__file__).parent
SITUATIONS = yaml.safe_load((HERE / "data" / "maas_situations.yml").read_text())
LOGS = {
    case["name"]: case["log"]
    for case in yaml.safe_load((HERE.parents[1] / "formats/maas/data/curtin_cases.yml").read_text())
}
FIRST = "node001"
COUNTED = {
    "enrols": "POST machines",
    "commissions": "POST machines commission",
    "allocates": "POST machines allocate",
    "deploys": "POST machines deploy",
    "releases": "POST machines release",
}
MARKUP = re.compile(r"</?[a-zA-Z][^<>]*>")
ACCESS = HostAccess("ops", PUBLIC, "/key", lambda name: ("private", PUBLIC), lambda name: ("private", PUBLIC))


@pytest.fixture(autouse=True)
def without_waits() -> Iterator[None]:
    """Reads are not tried again by themselves: each look is one request, and nothing waits for a clock."""
    stamina.set_testing(True, attempts=1)
    yield
    stamina.set_testing(False)


@dataclass
class Healing:
    """The installer; before its look number `looks`, MAAS loses its quirks."""

    installer: MaasInstaller
    lab: Lab
    looks: int | None
    seen: int = 0
    prepare: Any = field(init=False)
    start: Any = field(init=False)
    release: Any = field(init=False)
    power_login: Any = field(init=False)

    def __post_init__(self) -> None:
        self.prepare, self.start, self.release = self.installer.prepare, self.installer.start, self.installer.release
        self.power_login = self.installer.power_login

    def observe(self, targets: list[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        if self.looks is not None and self.seen == self.looks:
            healed = replace(self.lab.world.machines[FIRST], maas_quirks=frozenset())
            self.lab.run(self.lab.world.replace(healed))
        self.seen += 1
        return self.installer.observe(targets, deadline)


def node_of(lab: Lab, name: str = FIRST) -> Node | None:
    return lab.maas.service.store.by_mac(lab.world.machines[name].boot_mac)


def bring_there(lab: Lab, before: Mapping[str, Any]) -> None:
    """Have MAAS hold the first machine as `before` has it."""
    installer, target, deadline = lab.installer(), lab.target(), Deadline.after(120)
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    node, store = node_of(lab), lab.maas.service.store
    assert node is not None
    node.status = next(status for status in Status if status.label == before["status"])
    node.previous = Status.READY
    node.owner, node.agent_name = before.get("owner", ""), before.get("agent", "")
    node.locked = before.get("locked", False)
    node.pool = before.get("pool", node.pool)
    if "serial" in before and node.hardware is not None:
        node.hardware = replace(node.hardware, serial=before["serial"])
    if "bmc_password" in before:
        node.power_parameters["power_pass"] = before["bmc_password"]
    if "also_laid_out" in before:
        disk = node.disks[before["also_laid_out"]]
        disk.root = Partition(store.next_id("partition"), str(uuid4()), str(uuid4()), disk.usable, "/data")
    if "bmc_of" in before:
        other = lab.world.machines[before["bmc_of"]].bmc.address
        node.power_parameters["power_address"] = f"{other}:{lab.target().bmc.port}"
    if before.get("layout") == "none":
        clear(node)
    elif before.get("layout") == "other":
        lay_flat(store, node, node.disks[1], None)
    if "curtin" in before:
        lab.maas.faults.install_logs[node.hostname] = LOGS[before["curtin"]]


def prepared(lab: Lab, case: Mapping[str, Any]) -> None:
    for name in ("training", "research"):
        lab.maas.service.store.pools[name] = Pool(7, name, "")
    lab.maas.faults.version = str(case.get("version", lab.maas.faults.version))
    if "before" in case:
        bring_there(lab, case["before"])
    broken = lab.world.machines
    if "fault" in case:
        lab.run(lab.world.replace(inject_all(broken, case["fault"], FIRST)[0]))
    if "bmc" in case:
        target = f"{FIRST}:{','.join(case['bmc'])}"
        lab.run(lab.world.replace(inject_all(lab.world.machines, BMC_QUIRKS, target)[0]))
    if "quirks" in case:
        target = f"{FIRST}:{','.join(case['quirks'])}"
        lab.run(lab.world.replace(inject_all(lab.world.machines, MAAS_QUIRKS, target)[0]))
    for operation, failures in case.get("answers", {}).items():
        lab.maas.faults.answers[operation].extend(Failure(failure) for failure in failures)
    lab.maas.requests.clear()


def discovered(book: SqlJournal, lab: Lab) -> list[NodeId]:
    """The lab's machines, as if discover had found them."""
    ids = []
    for machine in lab.world.machines.values():
        node = NodeId(f"id-{machine.name}")
        root = machine.drives[0].serial
        inventory = Inventory(
            machine.manufacturer,
            machine.model,
            Serial(machine.serial),
            nics=(Nic("nic0", Mac(machine.boot_mac), boots=True),),
            drives=(Drive("0", "M.2", 480_000_000_000, Serial(root)),),
        )
        described = {"name": machine.name, "bmc": machine.bmc.address, "rack": "A01", "unit": machine.index}
        data = {"inventory": inventory_to_data(inventory), "sku": "lab", "root_disk": root}
        book.append(
            [
                new_event("node", node, Kind.NODE_DESCRIBED, described),
                new_event("node", node, Kind.NODE_IDENTIFIED, data),
                *advances(node, "discovered"),
            ]
        )
        ids.append(node)
    return ids


def settings_of(site: Mapping[str, Any]) -> dict[str, Any]:
    fields = {key: value for key, value in site.items() if key in ("pool", "series", "write_s")}
    if "write_s" in fields:
        fields["write_seconds"] = fields.pop("write_s")
    return {**fields, "move_from_pools": tuple(site.get("move_from_pools", ()))}


def play(lab: Lab, book: SqlJournal, case: Mapping[str, Any]) -> tuple[list[StepOutcome], Exception | None]:
    """Run the step to its end. Return the outcomes in their order, and what it raised."""
    prepared(lab, case)
    site = case.get("site", {})
    installer = Healing(lab.installer(**settings_of(site)), lab, case.get("heals"))
    bmcs = RedfishBmcs(FixedClock(), QUICK)
    shell = FakeShell({name: f"boot\n{name}\n" for name in lab.world.machines})
    services = InstallServices(installer, shell, bmcs, lambda name: lab.target(name).bmc)
    step = Install(services, ACCESS, INSTALLERS_NETWORK, poll_s=0.01, away_s=site.get("away_s", 60.0))
    nodes = [book.state(node) for node in discovered(book, lab)]
    intents = IntentLog(book, book.claim([node.id for node in nodes], "r").granted)
    outcomes: list[StepOutcome] = []
    try:
        outcomes.extend(step.run(nodes, intents, Deadline.after(120)))
    except Exception as error:  # noqa: BLE001 — the executor writes what a step raises as the reason for all its nodes
        return outcomes, error
    return outcomes, None


def install_finding(outcome: StepOutcome) -> tuple[Verdict, str, str, str]:
    finding = outcome.findings[0]
    return finding.verdict, finding.code.value, finding.cause, finding.remedy


@pytest.mark.parametrize("case", SITUATIONS, ids=lambda case: case["name"])
def test_what_comes_out_of_a_situation(tmp_path: Path, book: SqlJournal, case: Mapping[str, Any]) -> None:
    """Verdict, cause, remedy and the number of requests are those of the table; no markup and no secret is shown."""
    lab = Lab(tmp_path, machines=case.get("machines", 1), network="127.111.0.0/16")
    try:
        outcomes, error = play(lab, book, case)
        verdict, code, cause, remedy = (
            install_finding(next(each for each in outcomes if each.node == f"id-{FIRST}"))
            if error is None
            else (Verdict.INCONCLUSIVE, "", str(error), str(error))
        )
        check_words(case["expect"], verdict, code, cause, remedy)
        check_requests(lab, case["expect"])
        check_others(case["expect"], outcomes)
        check_remedy(lab, case["expect"])
        check_unlocked(lab, case["expect"])
    finally:
        lab.close()


def check_words(expect: Mapping[str, Any], verdict: Verdict, code: str, cause: str, remedy: str) -> None:
    message = f"{verdict.value} {code}: {cause} — {remedy}"
    assert verdict.value.lower() == expect["verdict"], message
    assert code == expect.get("code", code), message
    for part in expect.get("cause", ()):
        assert part in cause, message
    for part in expect.get("remedy", ()):
        assert part in remedy, message
    assert verdict is Verdict.PASS or remedy, message
    assert MARKUP.search(message) is None, message
    assert message.isprintable(), message
    assert len(message) < 2000
    assert BMC_PASSWORD not in message
    assert "secretkey" not in message


def check_requests(lab: Lab, expect: Mapping[str, Any]) -> None:
    counted = {name: lab.maas.requests[words] for name, words in COUNTED.items() if name in expect}
    assert counted == {name: expect[name] for name in counted}
    node = node_of(lab)
    if "status" in expect:
        assert node is not None
        assert node.status.label == expect["status"]
    if "rejected" in expect:
        assert lab.rejected() == expect["rejected"]
    if "powers" in expect:
        since = max((event.id for event in node.events if event.type == "Ready"), default=0) if node else 0
        orders = [event for event in node.events if event.type == "Powering on" and event.id > since] if node else []
        assert len(orders) <= expect["powers"]


def check_others(expect: Mapping[str, Any], outcomes: list[StepOutcome]) -> None:
    if "others" in expect:
        *others, last = outcomes
        assert last.node == f"id-{FIRST}"
        assert {install_finding(each)[0].value.lower() for each in others} == {expect["others"]}


def check_remedy(lab: Lab, expect: Mapping[str, Any]) -> None:
    """MAAS accepts what the remedy names, in the state that the machine is in."""
    node = node_of(lab)
    if "then" in expect and node is not None:
        MaasApi(lab.settings(), UtcClock()).post(f"machines/{node.system_id}/", expect["then"], (), Deadline.after(120))


def check_unlocked(lab: Lab, expect: Mapping[str, Any]) -> None:
    """The wrong password was not tried so often that the BMC has locked the account."""
    if "unlocked" in expect:
        right = replace(lab.target().bmc, password=lab.world.machines[FIRST].bmc.password)
        assert right.password != BMC_PASSWORD
        with RedfishBmcs(FixedClock(), QUICK).open(right, Deadline.after(120)) as bmc:
            assert bmc.power(Deadline.after(120)).value


def test_the_table_is_large_and_its_names_are_unique() -> None:
    """At least thirty situations."""
    names = [case["name"] for case in SITUATIONS]
    assert len(names) == len(set(names)) >= 30
