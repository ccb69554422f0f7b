"""What each kind of event changes in a node's state: these fields, to these values, and no other."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from clusterctl.fleet.acts import Act, ActResult, Intent, RebootDetails
from clusterctl.fleet.decisions.waiver import Waiver
from clusterctl.fleet.errors import ConflictError
from clusterctl.fleet.event import Payload, node_event
from clusterctl.fleet.finding import Origin, Report, Verdict
from clusterctl.fleet.fold import apply, fold
from clusterctl.fleet.hardware.sku import RootDisk
from clusterctl.fleet.node import Location, Mac, NodeId, RevalidationOrigin, Serial, Stage, Step
from clusterctl.fleet.payloads.decisions import (
    HoldLifted,
    HoldSet,
    NodeMerged,
    NodeReleased,
    NodeRelocated,
    NodeRetired,
    ReinstallOrdered,
    RevalidationOrdered,
    WaiverGranted,
    WaiverRevoked,
)
from clusterctl.fleet.payloads.node import (
    ActIntended,
    ActObserved,
    BmcPasswordChanged,
    HostKeyPinned,
    HostKeyTrust,
    InstallProgress,
    NodeAddressed,
    NodeAdopted,
    NodeDescribed,
    NodeHeld,
    NodeIdentified,
    NodeQuarantined,
    ReportRecorded,
    RootDiskProven,
    StageAdvanced,
    StepStarted,
)
from clusterctl.fleet.state import NodeState, OperatorHold, Revalidation
from tests.events import written
from tests.fleet.people import LATER, MACHINE

EARLIER, NOW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
SEQ = 90
REBOOT = Intent(Act.CONFIGURE_REBOOT, "S1", 11, RebootDetails(boot_id="b"))
ERASE = Intent(Act.RETIRE_ERASE, "S1", 12, result=ActResult.BEGUN, observed=13, done=5)
REPORTS = {
    step.value: Report(step.value, "bootstrap", (), frozenset({Origin.REAL})) for step in Step if step is not Step.ADMIT
}
HELD = OperatorHold("mine", "bob", EARLIER)
GPU_3 = Waiver("gpu_ecc", "gpu 3", "known", "bob", EARLIER, LATER)
GPU_4 = replace(GPU_3, subject="gpu 4")
RULE = RootDisk(model="M.2", chosen_by="host")

FULL = NodeState(
    NodeId("id-n1"),
    name="n1",
    stage=Stage.CABLED,
    since=EARLIER,
    verdict=Verdict.FAIL,
    cause="2 errors",
    remedy="replace GPU 3",
    stopped_at=Step.BURNIN,
    bmc="192.0.2.1",
    location=Location("A01", 4),
    expected_serial=Serial("S1"),
    serial=Serial("S1"),
    inventory=MACHINE,
    sku="lab",
    root_disk=Serial("DISK-0"),
    root_rule=RULE,
    address="192.0.2.9",
    host_key="ssh-ed25519 A",
    attempts=2,
    intents=(REBOOT, ERASE),
    reports=REPORTS,
    reported_at=dict.fromkeys(REPORTS, EARLIER),
    events=7,
    last_seq=SEQ - 1,
    stopped_by="bob",
    hold=HELD,
    waivers=(GPU_3, GPU_4),
    former_serials=(Serial("S0"),),
    boot_mac=Mac("02:00:00:00:00:01"),
    reinstall="new OS",
    progress_at=EARLIER,
    progress=("partitions",),
    revalidation=Revalidation(RevalidationOrigin.NIGHT, "nightly"),
    admitted_at=EARLIER,
    adopted=True,
)
"""A node of which every field is set: an event that should leave a field alone, or clear it, shows."""
AWAKE = {
    "verdict": Verdict.INCONCLUSIVE,
    "since": NOW,
    "cause": "",
    "remedy": "",
    "stopped_at": None,
    "stopped_by": "",
    "attempts": 0,
}
"""After a move nothing is measured yet, and nothing keeps the node back."""
STOP = {"cause": "slow", "remedy": "replace it"}
STOPPED = {**STOP, "verdict": Verdict.WARN, "since": NOW, "stopped_at": Step.CABLE}
NEW_REPORT = Report("cable", "bootstrap", (), frozenset({Origin.SIMULATED}))
NO_LONGER_OPEN = (replace(REBOOT, result=ActResult.UNKNOWN), ERASE)


def old_reports(*steps: Step) -> dict[str, Any]:
    kept = {step.value: REPORTS[step.value] for step in steps}
    return {"reports": kept, "reported_at": dict.fromkeys(kept, EARLIER)}


@dataclass(frozen=True)
class Case:
    """At `stage` the event changes these fields, apart from the counters of events."""

    payload: Payload
    changes: dict[str, Any]
    stage: Stage = Stage.CABLED
    before: NodeState = FULL


def revalidation(since: Step, to: Stage) -> RevalidationOrdered:
    return RevalidationOrdered(
        since=since, to=to, was=Stage.GOLD, origin=RevalidationOrigin.OPERATOR, reason="repaired"
    )


ORDERED = {"revalidation": Revalidation(RevalidationOrigin.OPERATOR, "repaired")}
MERGED = {
    "serial": "S2",
    "former_serials": ("S0", "S1"),
    "inventory": None,
    "sku": "",
    "root_disk": None,
    "root_rule": None,
    "address": "",
    "intents": (),
    "reports": {},
    "reported_at": {},
    "waivers": (),
    "reinstall": "",
    "revalidation": None,
    "admitted_at": None,
    "adopted": False,
}
RETIRED = {
    **AWAKE,
    "stage": Stage.RETIRED,
    "verdict": Verdict.NOT_APPLICABLE,
    "intents": (),
    "hold": None,
    "waivers": (),
}
IDENTIFIED = {"inventory": replace(MACHINE, serial=Serial("S9")), "sku": "other", "serial": "S9"}
OTHER_RULE = replace(RULE, model="U.2")
CASES: dict[str, Case] = {
    "described": Case(
        NodeDescribed(
            name="n2", bmc="192.0.2.2", rack="B02", unit=9, serial=Serial("S5"), boot_mac=Mac("02:00:00:00:00:09")
        ),
        {
            "name": "n2",
            "bmc": "192.0.2.2",
            "location": Location("B02", 9),
            "expected_serial": "S5",
            "boot_mac": "02:00:00:00:00:09",
        },
    ),
    "described without a serial": Case(
        NodeDescribed(name="n1", bmc="192.0.2.1", rack="A01", unit=4), {"expected_serial": None, "boot_mac": None}
    ),
    "described with an empty serial": Case(
        NodeDescribed(name="n1", bmc="192.0.2.1", rack="A01", unit=4, serial=Serial(""), boot_mac=Mac("")),
        {"expected_serial": None, "boot_mac": None},
    ),
    "described for the first time": Case(
        NodeDescribed(name="n1", bmc="192.0.2.1", rack="A01", unit=4, serial=Serial("S1"), boot_mac=FULL.boot_mac),
        {"since": NOW},
        before=replace(FULL, since=None),
    ),
    "identified, the disk named by the BMC": Case(
        NodeIdentified(inventory=IDENTIFIED["inventory"], sku="other", root_disk=Serial("D9")),
        {**IDENTIFIED, "root_disk": "D9", "root_rule": None},
    ),
    "identified, the disk proven by the host before": Case(
        NodeIdentified(inventory=IDENTIFIED["inventory"], sku="other", root_rule=OTHER_RULE),
        {**IDENTIFIED, "root_rule": OTHER_RULE},
    ),
    "identified without a rule, no disk": Case(
        NodeIdentified(inventory=IDENTIFIED["inventory"], sku="other"),
        {**IDENTIFIED, "root_disk": None, "root_rule": None},
    ),
    "identified with a rule, the disk not proven by one": Case(
        NodeIdentified(inventory=IDENTIFIED["inventory"], sku="other", root_rule=RULE),
        {**IDENTIFIED, "root_disk": None, "root_rule": RULE},
        before=replace(FULL, root_rule=None),
    ),
    "addressed": Case(NodeAddressed(address="192.0.2.10"), {"address": "192.0.2.10"}),
    "root disk proven": Case(RootDiskProven(disk=Serial("D9")), {"root_disk": "D9"}),
    "host key pinned": Case(HostKeyPinned(public="ssh-ed25519 B"), {"host_key": "ssh-ed25519 B"}),
    "adopted": Case(
        NodeAdopted(address="192.0.2.10", public="ssh-ed25519 B", trust=HostKeyTrust.OPERATOR, serial=Serial("S1")),
        {"address": "192.0.2.10", "host_key": "ssh-ed25519 B", "adopted": True},
        before=replace(FULL, adopted=False),
    ),
    "a step started": Case(StepStarted(step=Step.BURNIN), {"attempts": 3}),
    "an act intended": Case(
        ActIntended(act=Act.POWER_ON, target="S1"), {"intents": (REBOOT, ERASE, Intent(Act.POWER_ON, "S1", SEQ))}
    ),
    "an act on a node that was not adopted": Case(
        ActIntended(act=Act.POWER_ON, target="S1"),
        {"intents": (REBOOT, ERASE, Intent(Act.POWER_ON, "S1", SEQ))},
        before=replace(FULL, adopted=False),
    ),
    "an act intended again": Case(
        ActIntended(act=Act.RETIRE_ERASE, target="S1"),
        {"intents": (REBOOT, Intent(Act.RETIRE_ERASE, "S1", SEQ, done=5))},
    ),
    "the start of an install": Case(
        ActIntended(act=Act.INSTALL_START, target="S1"),
        {"intents": (*NO_LONGER_OPEN, Intent(Act.INSTALL_START, "S1", SEQ)), "reinstall": "", "adopted": False},
    ),
    "an act done": Case(
        ActObserved(act=Act.RETIRE_ERASE),
        {"intents": (REBOOT, replace(ERASE, result=ActResult.DONE, observed=SEQ, done=SEQ))},
    ),
    "an act failed": Case(
        ActObserved(act=Act.RETIRE_ERASE, result=ActResult.FAILED),
        {"intents": (REBOOT, replace(ERASE, result=ActResult.FAILED, observed=SEQ))},
    ),
    "an act of another one seen to go on": Case(
        ActObserved(act=Act.POWER_ON, result=ActResult.BEGUN),
        {"intents": (REBOOT, ERASE, Intent(Act.POWER_ON, "", SEQ, result=ActResult.BEGUN, observed=SEQ))},
    ),
    "an act of another one done": Case(
        ActObserved(act=Act.POWER_ON),
        {"intents": (REBOOT, ERASE, Intent(Act.POWER_ON, "", SEQ, result=ActResult.DONE, observed=SEQ, done=SEQ))},
    ),
    "progress of the same instant": Case(
        InstallProgress(at=EARLIER, message="packages"), {"progress": ("partitions", "packages")}
    ),
    "progress of a later instant": Case(
        InstallProgress(at=NOW, message="packages"), {"progress_at": NOW, "progress": ("packages",)}
    ),
    "a report": Case(
        ReportRecorded(report=NEW_REPORT),
        {"reports": REPORTS | {"cable": NEW_REPORT}, "reported_at": FULL.reported_at | {"cable": NOW}},
    ),
    "advanced": Case(
        StageAdvanced(to=Stage.BURNED_IN, verdict=Verdict.WARN),
        {**AWAKE, "stage": Stage.BURNED_IN, "verdict": Verdict.WARN},
    ),
    "advanced to gold": Case(
        StageAdvanced(to=Stage.GOLD, verdict=Verdict.PASS),
        {**AWAKE, "stage": Stage.GOLD, "verdict": Verdict.PASS, "revalidation": None, "admitted_at": NOW},
        Stage.BURNED_IN,
    ),
    "stopped": Case(NodeHeld(step=Step.CABLE, verdict=Verdict.WARN, **STOP), {**STOPPED, "stopped_by": ""}),
    "quarantined by the gate": Case(
        NodeQuarantined(step=Step.CABLE, verdict=Verdict.WARN, **STOP),
        {**STOPPED, "stage": Stage.QUARANTINED, "stopped_by": ""},
    ),
    "quarantined by an operator": Case(
        NodeQuarantined(step=Step.CABLE, verdict=Verdict.WARN, by_operator=True, **STOP),
        {**STOPPED, "stage": Stage.QUARANTINED, "stopped_by": "alice"},
    ),
    "released": Case(
        NodeReleased(to=Stage.CONFIGURED, reason="repaired"),
        {**AWAKE, "stage": Stage.CONFIGURED, "intents": NO_LONGER_OPEN},
        Stage.QUARANTINED,
    ),
    "held by an operator": Case(
        HoldSet(reason="tests", until=LATER), {"hold": OperatorHold("tests", "alice", NOW, LATER)}
    ),
    "hold lifted": Case(HoldLifted(reason="over"), {"hold": None}),
    "waived again": Case(
        WaiverGranted(check="gpu_ecc", subject="gpu 3", reason="new", until=LATER),
        {"waivers": (GPU_4, Waiver("gpu_ecc", "gpu 3", "new", "alice", NOW, LATER))},
    ),
    "waiver revoked": Case(WaiverRevoked(check="gpu_ecc", subject="gpu 4", reason="over"), {"waivers": (GPU_3,)}),
    "merged": Case(
        NodeMerged(node="n1", old="S1", new=Serial("S2"), reason="board swapped"),
        {**AWAKE, **MERGED, "stage": Stage.SEEN},
    ),
    "merged without a serial before": Case(
        NodeMerged(node="n1", old="", new=Serial("S2"), reason="board swapped"),
        {**AWAKE, **MERGED, "stage": Stage.SEEN, "former_serials": ("S0",)},
        before=replace(FULL, serial=None),
    ),
    "to be reinstalled": Case(
        ReinstallOrdered(reason="other OS", serial="S1", root_disk="D", was=Stage.GOLD),
        {**AWAKE, "stage": Stage.DISCOVERED, "reinstall": "other OS", "revalidation": None, "admitted_at": None},
        Stage.GOLD,
    ),
    "to be revalidated from burn-in on": Case(
        revalidation(Step.BURNIN, Stage.CABLED),
        {
            **AWAKE,
            **ORDERED,
            **old_reports(Step.DISCOVER, Step.INSTALL, Step.CONFIGURE, Step.CABLE),
            "stage": Stage.CABLED,
        },
        Stage.GOLD,
    ),
    "to be revalidated from install on": Case(
        revalidation(Step.INSTALL, Stage.DISCOVERED),
        {**AWAKE, **ORDERED, **old_reports(Step.DISCOVER), "stage": Stage.DISCOVERED},
        Stage.GOLD,
    ),
    "retired": Case(NodeRetired(reason="sold"), {**RETIRED, "cause": "retired by alice: sold"}),
    "retired and erased": Case(
        NodeRetired(reason="sold", wiped=True), {**RETIRED, "cause": "retired by alice, its drives erased: sold"}
    ),
    "retired into another node": Case(
        NodeRetired(reason="moved", into="n7"),
        {
            **RETIRED,
            "cause": "alice declared it one machine with n7: moved",
            "serial": None,
            "former_serials": ("S0", "S1"),
        },
    ),
    "what only counts": Case(BmcPasswordChanged(number=2, user="root"), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_an_event_changes_these_fields(name: str) -> None:
    """Apart from the number of events and the last one."""
    case = CASES[name]
    before = replace(case.before, stage=case.stage)
    state = apply(before, written(node_event(before.id, case.payload), SEQ, NOW, "alice"))
    wanted = replace(before, **{**case.changes, "events": 8, "last_seq": SEQ})
    changed = {field.name: getattr(state, field.name) for field in fields(NodeState)}
    assert changed == {field.name: getattr(wanted, field.name) for field in fields(NodeState)}


MOVES = (
    "advanced",
    "stopped",
    "quarantined by the gate",
    "released",
    "merged",
    "to be reinstalled",
    "to be revalidated from burn-in on",
    "retired",
)


@pytest.mark.parametrize("name", MOVES)
def test_a_retired_node_does_not_move(name: str) -> None:
    """The event was decided for a stage that the node has left."""
    retired = replace(FULL, stage=Stage.RETIRED)
    with pytest.raises(ConflictError, match="its stage has changed meanwhile"):
        apply(retired, written(node_event(retired.id, CASES[name].payload), SEQ, NOW))


@pytest.mark.parametrize(
    ("stage", "stopped", "since", "after"),
    [
        (Stage.QUARANTINED, Step.BURNIN, Step.CABLE, Step.CABLE),
        (Stage.QUARANTINED, Step.INSTALL, Step.CABLE, Step.INSTALL),
        (Stage.QUARANTINED, Step.CABLE, Step.CABLE, Step.CABLE),
        (Stage.QUARANTINED, Step.BURNIN, None, Step.BURNIN),
        (Stage.QUARANTINED, None, Step.CABLE, None),
        (Stage.CABLED, Step.BURNIN, Step.CABLE, Step.BURNIN),
    ],
)
def test_what_was_moved_is_released_to_the_first_step_that_must_prove_it(
    stage: Stage, stopped: Step | None, since: Step | None, after: Step | None
) -> None:
    """Never to a later one than where it stopped; outside of quarantine nothing waits for a release."""
    before = replace(FULL, stage=stage, stopped_at=stopped)
    payload = NodeRelocated(changes="rack A01 → A02", serial="S1", reason="moved", since=since)
    state = apply(before, written(node_event(FULL.id, payload), SEQ, NOW))
    assert state.stopped_at is after
    assert state.stage is stage


def test_the_fold_of_a_stream_is_one_event_after_the_other() -> None:
    """In their order, from a node of which nothing is known."""
    payloads = [
        NodeDescribed(name="n1", bmc="192.0.2.1"),
        NodeAddressed(address="192.0.2.9"),
        NodeAddressed(address="x"),
    ]
    events = [written(node_event(FULL.id, one), seq, NOW) for seq, one in enumerate(payloads, 4)]
    assert fold(events, FULL.id) == NodeState(
        FULL.id, name="n1", bmc="192.0.2.1", address="x", since=NOW, events=3, last_seq=6
    )
