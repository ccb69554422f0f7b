"""The real client reads every tree of this folder, and the values that its truth names are what it found."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.bmc.logs import UNREAD
from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.sku import RootDisk, Sku
from clusterctl.fleet.node import Inventory, NodeId
from clusterctl.fleet.state import NodeState
from clusterctl.formats.redfish.identity import Identity, next_path, read_identity
from clusterctl.formats.redfish.inventory import read_inventory
from clusterctl.formats.redfish.tree import ROOT, Unreadable
from clusterctl.ports import BmcAddress, Deadline, LogEntry
from clusterctl.steps.discover.step import Discover, DiscoverPlan, DiscoverServices
from clusterctl.steps.executor.intent_log import IntentLog
from tests.edges.redfish.conftest import QUICK, FixedClock
from tests.edges.redfish.replay import serve
from tests.edges.redfish.trees import Manner, answer, ask
from tests.redfish_trees.load import CASES, Tree, load_tree, load_truth
from tests.steps.discover.test_discover import NoJournal

KINDS = ("cpus", "dimms", "gpus", "hcas", "nics", "drives", "psus", "fans")
FIELDS = {"slots": "slot", "serials": "serial", "macs": "mac", "guids": "guid", "cores": "cores", "ports": "port"}
SIZES = {"dimms": "size_mib", "drives": "size_bytes"}
REPORTED = ("bios_version", "bmc_firmware", "memory_gib", "health", "stale")
MACHINES = [name for name in CASES if "error" not in load_truth(name)["identity"]]


class Read:
    """What the client has read of one case: inventory, log, and what discover finds of it."""

    def __init__(self, name: str, directory: Path, tree: Tree | None = None) -> None:
        self.truth = load_truth(name)
        with serve(tree or load_tree(name), directory, tls=False) as (_, served):
            bmcs, address = RedfishBmcs(FixedClock(), QUICK), plain(served)
            with bmcs.open(address, Deadline.after(60)) as bmc:
                self.inventory: Inventory = bmc.inventory(Deadline.after(60)).value
                self.log: tuple[LogEntry, ...] = bmc.event_log(Deadline.after(60)).value
            services = DiscoverServices(bmcs, lambda _: address, dict)
            step = Discover(services, DiscoverPlan([sku_of(self.truth)], workers=1, read_only=True))
            node = NodeState(NodeId("id1"), "n1", bmc="192.0.2.1")
            (outcome,) = step.run([node], IntentLog(NoJournal(), {}), Deadline.after(60))  # type: ignore[arg-type]
            self.findings: tuple[Finding, ...] = outcome.findings
            self.facts = outcome.facts


def plain(address: BmcAddress) -> BmcAddress:
    """The same BMC without TLS."""
    return replace(address, ca_file="", plain_http=True)


def sku_of(truth: dict[str, Any]) -> Sku:
    """Return the SKU that fits by the truth file."""
    given: dict[str, Any] = {"name": "case", "limits": "case", "hca_rate_gbps": 400, **truth["sku"]}
    given["root_disk"] = RootDisk(**given.pop("root_disk", {}))
    given["unreported"] = frozenset(given.pop("unreported", ()))
    identity = truth["identity"]
    return Sku(**{"manufacturer": identity["manufacturer"], "model": identity["model"], **given})


@pytest.fixture(scope="module", params=MACHINES)
def read(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Read:
    return Read(request.param, tmp_path_factory.mktemp("bmc"))


def test_there_are_trees_of_many_makers() -> None:
    """At least twelve, of at least six."""
    makers = {load_truth(name)["maker"] for name in CASES}
    assert len(CASES) >= 12
    assert len(makers) >= 6


def test_identity(read: Read) -> None:
    """Manufacturer, model and serial, and the other serials of the machine."""
    found = read.inventory
    expected = read.truth["identity"]
    assert {name: getattr(found, name) for name in ("manufacturer", "model", "serial")} == {
        name: expected[name] for name in ("manufacturer", "model", "serial")
    }
    assert set(found.aliases) == set(expected.get("aliases", ()))


def test_inventory(read: Read) -> None:
    """Every kind of parts, counted once; None where the BMC does not report it."""
    expected = read.truth["inventory"]
    assert set(expected) >= set(KINDS)
    found = {kind: described(kind, getattr(read.inventory, kind), expected[kind]) for kind in KINDS}
    assert found == {kind: in_order(expected[kind]) for kind in KINDS}
    reported = {name: getattr(read.inventory, name) for name in REPORTED if name in expected}
    assert reported == {name: expected[name] for name in reported}
    incomplete = {kind for kind in KINDS if getattr(read.inventory, kind) is not None}
    incomplete = {kind for kind in incomplete if not read.inventory.complete(kind)}
    assert incomplete == set(expected.get("incomplete", ()))


def test_links(read: Read) -> None:
    """Which Ethernet ports have a link and which have none, where the truth file has it; no healthy machine is warned of.

    A port that does not operate, or whose link is null, is neither.
    """
    ports = read.inventory.nics or ()
    if (expected := read.truth.get("links")) is not None:
        assert [port.slot for port in ports if port.link] == expected["up"]
        assert [port.slot for port in ports if port.link is False] == expected["down"]
    assert not [finding for finding in read.findings if finding.code is Code.BOOT_PORT_NO_LINK]


def in_order(expected: Any) -> Any:
    """The same with its lists sorted."""
    if not isinstance(expected, dict):
        return expected
    return {word: sorted(value, key=str) if isinstance(value, list) else value for word, value in expected.items()}


def described(kind: str, parts: Any, expected: Any) -> Any:
    """The parts in the words that the truth uses for this kind."""
    if parts is None or isinstance(expected, int):
        return parts if parts is None else len(parts)
    found: dict[str, Any] = {"count": len(parts)}
    for word in expected or ():
        if word in FIELDS:
            found[word] = sorted((getattr(part, FIELDS[word]) for part in parts), key=str)
    if "model" in (expected or ()):
        models = Counter(part.model for part in parts)
        found["model"] = next(iter(models)) if len(models) == 1 else dict(models)
    if "size" in (expected or ()):
        sizes = Counter(getattr(part, SIZES[kind]) for part in parts)
        found["size"] = next(iter(sizes)) if len(sizes) == 1 else dict(sizes)
    if "health" in (expected or ()):
        health = Counter(part.healthy for part in parts)
        found["health"] = next(iter(health)) if len(health) == 1 else dict(health)
    return found


def test_log(read: Read) -> None:
    """So many entries of each log, and which logs could not be read."""
    expected = read.truth["log"]
    entries = Counter(entry.log.removeprefix("/redfish/v1/") for entry in read.log if entry.message_id != UNREAD)
    unread = [entry.log.removeprefix("/redfish/v1/") for entry in read.log if entry.message_id == UNREAD]
    assert (dict(entries), sorted(unread)) == (expected.get("entries", {}), sorted(expected.get("unread", ())))


def test_discover(read: Read) -> None:
    """With a fitting SKU the machine passes, or is held by the checks that the truth names."""
    expected = read.truth["discover"]
    good = (Verdict.PASS, Verdict.NOT_APPLICABLE)
    bad = {one.check: one.verdict.name for one in read.findings if one.verdict not in good}
    assert bad == expected.get("findings", {})
    held = [one for one in read.findings if not one.verdict.admits and not one.settled_by]
    assert ("held" if held else "passes") == expected["outcome"]
    assert all(one.remedy for one in read.findings if one.verdict not in good)
    assert read.facts


@pytest.mark.parametrize("name", ["nvidia-gb200-tray", "nvidia-gh200", "supermicro-gb300-tray"])
def test_an_unreadable_chassis_makes_no_other_machine(name: str) -> None:
    """A cable cartridge costs nothing else, and is named; without the tray the machine is unknown, not another one."""
    tree, known = load_tree(name), load_truth(name)["identity"]["serial"]
    for path in (path for path in tree if path.startswith("/redfish/v1/Chassis/") and path.count("/") == 4):
        try:
            found = ask(read_inventory, tree | {path: Unreadable("HTTP 404")}).inventory
        except EdgeError as error:
            assert error.where == path  # noqa: PT017 — either outcome is right, by the chassis
            assert "CBC" not in path
            continue
        assert found.serial == known
        assert path in {one.where for one in found.unread}


def without_drives(name: str) -> Tree:
    """Return the tree as its source has it: the collections and links of drives are there, and empty."""
    tree = {path: body for path, body in load_tree(name).items() if "/Drives/" not in path and "/Volumes/" not in path}
    for body in tree.values():
        body |= {key: [] for key in ("Drives",) if isinstance(body.get(key), list)}
        if isinstance(members := body.get("Members"), list):
            body["Members"] = [one for one in members if one.get("@odata.id") in tree]
            body["Members@odata.count"] = len(body["Members"])
    return tree


@pytest.mark.parametrize("name", ["nvidia-dgx-h100", "dell-r750-h100"])
def test_a_machine_with_an_empty_drive_list_is_held(name: str, tmp_path: Path) -> None:
    """No drive is missing for certain, and none is chosen as the root disk: INCONCLUSIVE, with what to do."""
    read = Read(name, tmp_path, without_drives(name))
    found = {one.check: one for one in read.findings if not one.verdict.admits and one.verdict is not Verdict.PASS}
    assert {found[check].verdict for check in ("drive_count", "root_disk")} <= {Verdict.INCONCLUSIVE, Verdict.FAIL}
    assert found["root_disk"].remedy
    assert found["drive_count"].remedy


@pytest.mark.parametrize("name", [name for name in CASES if name not in MACHINES])
def test_a_machine_without_identity(name: str, tmp_path: Path) -> None:
    """The error names the missing field, and what to do."""
    with serve(load_tree(name), tmp_path, tls=False) as (_, served):
        bmcs = RedfishBmcs(FixedClock(), QUICK)
        with bmcs.open(plain(served), Deadline.after(60)) as bmc, pytest.raises(ParseError) as caught:
            bmc.inventory(Deadline.after(60))
    assert caught.value.where.endswith(load_truth(name)["identity"]["error"])
    assert caught.value.remedy


@pytest.mark.parametrize("name", [name for name in CASES if name not in MACHINES])
def test_a_sweep_names_what_is_no_machine(name: str) -> None:
    """What the truth names; a BMC of several hosts is in a machine."""
    assert swept(name).kind == load_truth(name)["identity"].get("kind", "")


def swept(name: str) -> Identity:
    """Return what a sweep reads of the case."""
    tree = load_tree(name)
    answers = {ROOT: tree[ROOT]}
    while (path := next_path(answers, "192.0.2.1")) is not None and len(answers) < 20:
        answers[path] = answer(tree, path, Manner.EXPANDS)
    return read_identity(answers, "192.0.2.1")


@pytest.mark.parametrize("name", MACHINES)
def test_a_sweep_finds_the_same_machine(name: str) -> None:
    """From few resources: manufacturer, model and serial as discover reads them, so that no sheet names another."""
    found, expected = swept(name), load_truth(name)["identity"]
    reported = (found.manufacturer, found.model, found.serial)
    assert reported == (expected["manufacturer"], expected["model"], expected["serial"])
