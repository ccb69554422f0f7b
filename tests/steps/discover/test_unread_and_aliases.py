"""What a BMC does not give costs nothing else; a machine whose board was swapped is the same machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from clusterctl.fleet.bmc.logs import UNREAD
from clusterctl.fleet.errors import EdgeError, UnreachableError
from clusterctl.fleet.finding import Finding, Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.sku import RootDisk
from clusterctl.fleet.node import Gpu, Inventory, Serial, Unread
from clusterctl.ports import Deadline, LogEntry
from clusterctl.steps.discover.step import Discover, DiscoverPlan, DiscoverServices
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.step import StepOutcome
from tests.fleet.skus import H100_X8
from tests.steps.discover.test_discover import NODE, NoJournal
from tests.steps.fakes import FakeBmc, FakeBmcs, address_of, inventory

SKU = replace(H100_X8, model="XE9680", root_disk=RootDisk(max_bytes=600_000_000_000), data_drive_count=0)
KNOWN = replace(NODE, serial=Serial("S1"), inventory=replace(inventory("S1"), aliases=(Serial("CHASSIS"),)))


class BmcWithoutLog(FakeBmc):
    """Gives the inventory, and fails at the log."""

    def event_log(self, deadline: Deadline) -> Observed[tuple[LogEntry, ...]]:
        raise UnreachableError("no answer in time", where="/redfish/v1/Systems/1/LogServices/SEL")


def discover(bmc: FakeBmc, node: object = NODE, known: Mapping[str, str] | None = None) -> StepOutcome:
    services = DiscoverServices(FakeBmcs({"n1": bmc}), address_of, lambda: known or {})
    step = Discover(services, DiscoverPlan([SKU], workers=1))
    (outcome,) = step.run([node], IntentLog(NoJournal(), {}), Deadline.after(60))  # type: ignore[arg-type, list-item]
    return outcome


def by_check(outcome: StepOutcome) -> dict[str, Finding]:
    return {finding.check: finding for finding in outcome.findings}


def swapped(serial: str, *aliases: str) -> Inventory:
    return replace(inventory(serial), aliases=tuple(map(Serial, aliases)))


def test_a_log_never_discards_an_inventory() -> None:
    """The facts are kept, and that the log is unmeasured is one finding on it and one line in the list."""
    outcome = discover(BmcWithoutLog(inventory("S1")))
    found = by_check(outcome)
    assert outcome.facts
    assert (found["event_log"].verdict, found["event_log"].code) == (Verdict.INCONCLUSIVE, Code.NOT_REPORTED)
    assert "LogServices/SEL" in found["bmc_unread"].cause


def test_a_bmc_without_any_log_is_a_warning() -> None:
    """It has none: the kernel's log of the host is all there is."""
    bare = LogEntry("", "", "the BMC lists no log", message_id=UNREAD)
    assert by_check(discover(FakeBmc(inventory("S1"), log=(bare,))))["event_log"].verdict is Verdict.WARN


@pytest.mark.parametrize(
    ("count", "lost", "verdict"), [(8, 1, Verdict.PASS), (7, 1, Verdict.INCONCLUSIVE), (7, 0, Verdict.FAIL)]
)
def test_what_is_unread_matters_where_the_sku_needs_it(count: int, lost: int, verdict: Verdict) -> None:
    """Eight read GPUs are eight; seven and one that the BMC does not give are not seven."""
    gpus = tuple(Gpu(f"GPU{n}", "H100", Serial(f"G{n}")) for n in range(count))
    unread = tuple(Unread("gpus", f"/redfish/v1/Systems/1/Processors/GPU{n + 8}", "HTTP 500") for n in range(lost))
    found = by_check(discover(FakeBmc(replace(inventory("S1"), gpus=gpus, unread=unread))))
    assert found["gpu_count"].verdict is verdict
    assert ("bmc_unread" in found) is bool(lost)
    assert not lost or found["bmc_unread"].verdict is Verdict.WARN


def test_an_incomplete_list_of_drives_names_no_root_disk() -> None:
    """The drive that could not be read may fit the rule too."""
    unread = (Unread("drives", "/redfish/v1/Systems/1/Storage/1/Drives/2", "HTTP 500"),)
    outcome = discover(FakeBmc(replace(inventory("S1"), unread=unread)))
    assert by_check(outcome)["root_disk"].verdict is Verdict.INCONCLUSIVE
    assert '"root_disk": null' in str(outcome.facts[0]) or "root_disk=None" in str(outcome.facts[0])


def test_a_swapped_board_is_not_another_machine() -> None:
    """The chassis' serial has stayed: a warning, and the new serial becomes the node's."""
    outcome = discover(FakeBmc(swapped("S9", "CHASSIS")), KNOWN)
    identity = by_check(outcome)["identity"]
    assert (identity.verdict, identity.code) == (Verdict.WARN, Code.MACHINE_RELABELLED)
    assert outcome.facts


@pytest.mark.parametrize(
    ("found", "known"),
    [
        (swapped("S9", "OTHER"), {}),
        (swapped("S9", "CHASSIS"), {"S9": "n2"}),
        (swapped("S9", "CHASSIS"), {"CHASSIS": ""}),
        (swapped("S9", "CHASSIS"), {"CHASSIS": "n2"}),
    ],
    ids=["no serial kept", "another node's", "an enclosure of several nodes", "another node's chassis"],
)
def test_another_machine_stays_another(found: Inventory, known: Mapping[str, str]) -> None:
    """What several nodes share, or another has, proves nothing: nothing is believed."""
    outcome = discover(FakeBmc(found), KNOWN, known)
    assert by_check(outcome)["identity"].verdict is Verdict.FAIL
    assert outcome.facts == ()


def test_a_sheet_may_name_any_serial_of_the_machine() -> None:
    """The label at the front may show the chassis' serial; it is the machine that was ordered."""
    node = replace(NODE, expected_serial=Serial("CHASSIS"))
    assert by_check(discover(FakeBmc(swapped("S1", "CHASSIS")), node))["identity"].verdict is Verdict.PASS


def test_a_bmc_that_gives_nothing_is_still_an_error() -> None:
    """Without an inventory there is nothing to keep."""
    outcome = discover(FakeBmc(EdgeError("HTTP 500")))
    assert outcome.facts == ()
