"""A machine without a BMC that fits no SKU keeps its make, so that its SKU can be written."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.fleet.finding import Observed, Verdict, passed
from clusterctl.fleet.node import Inventory, Serial
from clusterctl.fleet.payloads.node import NodeIdentified
from clusterctl.steps.discover.without_bmc import judge_host
from tests.fleet.skus import H100_X8
from tests.steps.discover.test_discover import NODE

MACHINE = Inventory(manufacturer="Dell Inc.", model="PowerEdge R760", serial=Serial("S1"), on=True)
IDENTITY = passed("identity", "the serial is the sheet's")


def test_its_make_and_serial_are_kept() -> None:
    """The node fits no SKU and does not pass; `sku new` has what it needs."""
    outcome = judge_host(NODE, Observed(MACHINE), (H100_X8,), lambda _node, _found: IDENTITY)
    (fact,) = outcome.facts
    assert isinstance(fact.payload, NodeIdentified)
    assert (fact.payload.inventory, fact.payload.sku) == (MACHINE, "")
    assert not all(finding.verdict.admits for finding in outcome.findings)


def test_a_node_keeps_the_sku_that_it_had() -> None:
    known = replace(NODE, sku=H100_X8.name)
    assert judge_host(known, Observed(MACHINE), (H100_X8,), lambda _node, _found: IDENTITY).facts == ()


def test_a_machine_of_another_identity_is_not_written_down() -> None:
    """A serial that is not the node's keeps nothing."""
    other = replace(IDENTITY, verdict=Verdict.FAIL)
    assert judge_host(NODE, Observed(MACHINE), (H100_X8,), lambda _node, _found: other).facts == ()
