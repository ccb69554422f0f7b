"""discover reports which machine answers, and never guesses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from clusterctl.fleet.errors import AuthenticationError, EdgeError, UnreachableError, UntrustedError
from clusterctl.fleet.finding import Finding, Observed, Verdict
from clusterctl.fleet.hardware.sku import RootDisk
from clusterctl.fleet.node import Firmware, Location, Mac, NodeId, Psu, Serial
from clusterctl.fleet.settings.baseline import Baseline, Bios, BiosWish, FirmwareWish
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, LogEntry
from clusterctl.steps.discover.step import Discover, DiscoverPlan, DiscoverServices
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.step import StepOutcome
from tests.events import data_of
from tests.fleet.skus import H100_X8
from tests.steps.fakes import FakeBmc, FakeBmcs, address_of, inventory, seen

SKU = replace(H100_X8, model="XE9680", root_disk=RootDisk(max_bytes=600_000_000_000))
NODE = NodeState(NodeId("id1"), "n1", bmc="192.0.2.1", location=Location("A01", 4), expected_serial=Serial("S1"))


class NoJournal:
    """discover must not write."""


def discover(bmc: FakeBmc, node: NodeState = NODE, known: Mapping[str, str] | None = None) -> StepOutcome:
    step = Discover(
        DiscoverServices(FakeBmcs({"n1": bmc}), address_of, lambda: known or {}), DiscoverPlan([SKU], workers=4)
    )
    (outcome,) = step.run([node], IntentLog(NoJournal(), {}), Deadline.after(60))  # type: ignore[arg-type]
    return outcome


def by_check(outcome: StepOutcome) -> dict[str, Finding]:
    return {finding.check: finding for finding in outcome.findings}


def test_the_machine_is_identified_and_matched() -> None:
    """Serial, SKU and root disk become facts; every finding points at its evidence; the session is closed."""
    bmc = FakeBmc(inventory("S1"))
    outcome = discover(bmc)
    assert data_of(outcome.facts[0])["sku"] == "lab"
    assert data_of(outcome.facts[0])["root_disk"] == "DISK-S1"
    assert by_check(outcome)["identity"].verdict is Verdict.PASS
    assert all(finding.evidence for finding in outcome.findings)
    assert bmc.closed == 1


def test_what_the_bmc_does_not_report_is_inconclusive() -> None:
    """GPUs that could not be read are not eight GPUs."""
    assert by_check(discover(FakeBmc(inventory("S1"))))["gpu_count"].verdict is Verdict.INCONCLUSIVE


def test_a_host_with_ports_that_the_bmc_does_not_report() -> None:
    """The operator is asked for the boot port; once the sheet has it, nothing is missing."""
    bare = replace(inventory("S1"), nics=None)
    asked = by_check(discover(FakeBmc(bare)))["nics"]
    assert asked.verdict is Verdict.INCONCLUSIVE
    assert "boot_mac" in asked.remedy
    reported = replace(NODE, boot_mac=Mac("02:00:00:00:00:07"))
    assert by_check(discover(FakeBmc(bare), reported))["nics"].verdict is Verdict.PASS
    assert replace(reported, inventory=bare).macs == ("02:00:00:00:00:07",)
    assert replace(reported, inventory=inventory("S1")).macs == ("02:00:00:00:00:01",)


def test_another_serial_is_the_wrong_machine() -> None:
    """A BMC that answers with another serial than the sheet's is stopped, and its facts are not believed."""
    outcome = discover(FakeBmc(inventory("S2")))
    assert by_check(outcome)["identity"].verdict is Verdict.FAIL
    assert outcome.facts == ()


def test_one_machine_behind_two_addresses_is_found() -> None:
    """A serial that another node has already is stopped, both named."""
    outcome = discover(FakeBmc(inventory("S1")), known={"S1": "n2"})
    identity = by_check(outcome)["identity"]
    assert "already belongs to n2" in identity.cause
    assert "clusterctl merge n1 --serial S1 --from n2" in identity.remedy


def test_one_machine_behind_two_addresses_of_one_run_is_found() -> None:
    """Neither is in the journal yet: still only one of them may be the machine, and the other's facts are not believed."""
    one, two = NODE, replace(NODE, id=NodeId("id2"), name="n2", bmc="192.0.2.2", expected_serial=None)
    bmcs = FakeBmcs({"n1": FakeBmc(inventory("S1")), "n2": FakeBmc(inventory("S1"))})
    step = Discover(DiscoverServices(bmcs, address_of, dict), DiscoverPlan([SKU], workers=4))
    outcomes = list(step.run([one, two], IntentLog(NoJournal(), {}), Deadline.after(60)))  # type: ignore[arg-type]
    verdicts = sorted(by_check(outcome)["identity"].verdict.value for outcome in outcomes)
    assert verdicts == ["fail", "pass"]
    assert [bool(outcome.facts) for outcome in outcomes].count(True) == 1


def test_a_machine_that_was_exchanged_is_not_believed() -> None:
    """A node that once answered with one serial and now with another is stopped, and keeps the serial it had."""
    outcome = discover(FakeBmc(inventory("S2")), replace(NODE, expected_serial=None, serial=Serial("S1")))
    assert by_check(outcome)["identity"].verdict is Verdict.FAIL
    assert outcome.facts == ()


@pytest.mark.parametrize(
    ("error", "verdict", "firm"),
    [
        (AuthenticationError("401"), Verdict.FAIL, True),
        (UntrustedError("not the pinned certificate", remedy="find out who answers"), Verdict.FAIL, True),
        (UnreachableError("no answer"), Verdict.FAIL, False),
        (EdgeError("HTTP 500"), Verdict.FAIL, False),
    ],
)
def test_a_bmc_that_cannot_be_read(error: EdgeError, verdict: Verdict, firm: bool) -> None:
    """A rejected password is not tried again, nor is a BMC that cannot prove who it is; silence is; each with a remedy at the rack."""
    (finding,) = discover(FakeBmc(error)).findings
    assert (finding.check, finding.verdict, finding.deterministic) == ("bmc", verdict, firm)
    assert "rack A01 U4" in finding.remedy


def test_the_remedy_for_silence_is_the_edges() -> None:
    """A BMC that takes connections and never answers needs a reset, not a cable."""
    (finding,) = discover(FakeBmc(UnreachableError("no answer in time", remedy="reset the BMC"))).findings
    assert finding.remedy == "BMC at 192.0.2.1 (rack A01 U4): reset the BMC"


def test_remedies_begin_with_the_place() -> None:
    """The technician who replaces the part must find the machine; an unknown place is not invented."""
    broken = replace(inventory("S1"), psus=(Psu("PS3", Serial("P3"), healthy=False),))
    found = by_check(discover(FakeBmc(broken)))["psu"]
    assert (found.subject, found.serial) == ("PS3", "P3")
    assert found.remedy.startswith("rack A01 U4, n1: check cord and feed of power supply PS3 (serial P3)")
    nowhere = by_check(discover(FakeBmc(broken), replace(NODE, location=Location())))["psu"]
    assert nowhere.remedy.startswith("check cord")


def test_critical_entries_of_the_event_log_warn() -> None:
    """Old critical entries are shown and warn; the health roll-up decides what still matters."""
    finding = by_check(discover(FakeBmc(inventory("S1"), (LogEntry("t", "Critical", "PSU 2 lost input"),))))[
        "event_log"
    ]
    assert finding.verdict is Verdict.WARN
    assert "PSU 2 lost input" in finding.cause


def test_a_machine_of_no_sku_is_stopped() -> None:
    """What was not ordered is named as what it is."""
    other = replace(inventory("S1"), model="PowerEdge R750")
    assert by_check(discover(FakeBmc(other)))["sku_model"].verdict is Verdict.FAIL


@dataclass
class ReportingBmc(FakeBmc):
    """With BIOS settings, unless `trouble` is raised instead."""

    trouble: EdgeError | None = None

    def bios(self, deadline: Deadline, *, thorough: bool = False) -> Observed[Bios]:
        if self.trouble is not None:
            raise self.trouble
        return Observed(Bios("R", {"Turbo": "Disabled"}, {}), seen("bios"))


TURBO = Baseline("b", (BiosWish({"Turbo": "Enabled"}),), (FirmwareWish("BIOS*", "2"),))
RUNS = replace(inventory("S1"), firmware=(Firmware("BIOS", "2"),))


def with_baseline(bmc: FakeBmc) -> dict[str, Finding]:
    step = Discover(
        DiscoverServices(FakeBmcs({"n1": bmc}), address_of, dict),
        DiscoverPlan([replace(SKU, baseline=TURBO)], workers=1),
    )
    (outcome,) = step.run([NODE], IntentLog(NoJournal(), {}), Deadline.after(60))  # type: ignore[arg-type]
    return by_check(outcome)


def test_drift_is_a_warning() -> None:
    """It is reported each time, with the evidence that was read for it, and stops the node from nothing."""
    found = with_baseline(ReportingBmc(RUNS))
    assert found["bios_baseline"].verdict is Verdict.WARN
    assert found["bios_baseline"].cause == "Turbo is Disabled, wanted Enabled"
    assert found["firmware_baseline"].verdict is Verdict.PASS
    assert found["bios_baseline"].evidence


def test_settings_that_cannot_be_read_are_inconclusive() -> None:
    """Unmeasured is not right; the rest of the inventory counts all the same."""
    found = with_baseline(ReportingBmc(inventory("S1"), trouble=EdgeError("HTTP 500")))
    assert found["bios_baseline"].verdict is Verdict.INCONCLUSIVE
    assert found["firmware_baseline"].verdict is Verdict.INCONCLUSIVE
    assert found["identity"].verdict is Verdict.PASS


def test_without_a_baseline_nothing_is_asked() -> None:
    """A BMC that has no such call is not asked for it."""
    assert "bios_baseline" not in by_check(discover(FakeBmc(inventory("S1"))))
