"""The identity of a node by an operator's order: only as far as it was seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusterctl.fleet.decisions.decision import waive
from clusterctl.fleet.decisions.identity import leaving, merge, retire, retired
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Serial, Stage
from clusterctl.fleet.state import NodeState, summarise
from tests.fleet.people import LATER, PROOF, WARM, after, node, reported, stopped

NEW = Serial("S2")
SEEN = Finding(
    check="identity", verdict=Verdict.FAIL, code=Code.WRONG_SERIAL, cause="S2 answers", serial="S2", evidence=(PROOF,)
)


def swapped(finding: Finding = SEEN) -> NodeState:
    """A node whose last discover has read another serial than its own."""
    return stopped(reported(node(Stage.SEEN), "discover", finding), "discover")


def test_a_swapped_chassis_goes_the_whole_way_again() -> None:
    """Nothing that was proven on, done to or answered for on the old machine counts; the history goes on."""
    before = after(swapped(), waive(reported(swapped(), "burnin", WARM), "gpu_ecc", "", "x", LATER).events)
    order = merge(before, NEW, "mainboard", [summarise(before)], None)
    node_after = after(before, order.events)
    assert (node_after.stage, node_after.serial, node_after.former_serials) == (Stage.SEEN, "S2", ("S1",))
    assert (node_after.reports, node_after.intents, node_after.inventory, node_after.waivers) == ({}, (), None, ())
    assert node_after.events == before.events + 1


def test_both_serials_remember_it() -> None:
    """A part's history survives a swap; each event points at what was seen."""
    events = merge(swapped(), NEW, "mainboard", [], None).events
    assert [(event.stream, event.subject) for event in events] == [("node", "id-n1"), ("part", "S1"), ("part", "S2")]
    assert all(event.kind is Kind.NODE_MERGED and event.evidence == (PROOF,) for event in events)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (node(), "no discover has read a serial"),
        (swapped(replace(SEEN, serial="S3")), "its last discover has read serial S3"),
        (swapped(replace(SEEN, evidence=())), "its last discover has read serial S2"),
    ],
)
def test_what_was_not_seen_is_not_believed(state: NodeState, words: str) -> None:
    """Exactly that serial, by the node's last discover, with evidence."""
    with pytest.raises(UsageError, match=f"S2 was not seen at n1: {words}"):
        merge(state, NEW, "x", [], None)


def test_one_machine_is_not_two_nodes() -> None:
    """A serial that another node has is taken over only when the operator confirms that it is that node's machine."""
    other = node(Stage.GOLD, "n2", "S2")
    with pytest.raises(UsageError, match=r"serial S2 is n2's \(gold\)") as caught:
        merge(swapped(), NEW, "moved", [summarise(other)], None)
    assert "--from n2" in caught.value.remedy
    order = merge(swapped(), NEW, "moved", [summarise(other)], other)
    gone = after(other, order.events)
    assert (gone.stage, gone.serial, gone.former_serials) == (Stage.RETIRED, None, ("S2",))
    assert gone.cause == "alice declared it one machine with n1: moved"
    assert after(swapped(), order.events).serial == "S2"


def test_a_retired_machine_comes_back_only_so() -> None:
    """Its serial stays its own, until an operator decides which node it is now."""
    gone = after(node(Stage.GOLD, "n2", "S2"), retire(node(Stage.GOLD, "n2", "S2"), "sold").events)
    assert gone.serial == "S2"
    with pytest.raises(UsageError, match=r"n2's \(retired\)"):
        merge(swapped(), NEW, "bought back", [summarise(gone)], None)
    assert merge(swapped(), NEW, "bought back", [summarise(gone)], gone)


def test_the_other_node_must_be_the_machines() -> None:
    """`--from` with a node that has another serial, or with the node itself, is a mistake."""
    other = node(Stage.GOLD, "n2", "S7")
    with pytest.raises(UsageError, match="n2 does not have that serial"):
        merge(swapped(), NEW, "x", [summarise(other)], other)
    with pytest.raises(UsageError, match="from itself"):
        merge(swapped(), NEW, "x", [], swapped())
    with pytest.raises(UsageError, match="has serial S1 already"):
        merge(swapped(), Serial("S1"), "x", [], None)


@pytest.mark.parametrize(
    ("state", "back"),
    [
        (node(Stage.GOLD), "install"),
        (stopped(node(Stage.CABLED), "burnin"), "install"),
        (node(Stage.SEEN), "discover"),
    ],
)
def test_a_node_that_is_being_erased_is_out_of_use(state: NodeState, back: str) -> None:
    """Released, it would be installed again: nothing of its OS is left."""
    out = after(state, [leaving(state, "sold")])
    assert (out.stage, out.stopped_at and out.stopped_at.value) == (Stage.QUARANTINED, back)


def test_a_wiped_node_reports_it() -> None:
    """And points at the proof."""
    event = retired(node(), "sold", (PROOF,))
    assert event.evidence == (PROOF,)
    assert after(node(), [event]).cause == "retired by alice, its drives erased: sold"
