"""States of an older program are still read."""

from __future__ import annotations

import json

from clusterctl.fleet.codec import (
    inventory_from_data,
    state_from_json,
    state_to_json,
    summary_from_json,
    summary_to_json,
)
from clusterctl.fleet.decisions.decision import hold, waive
from clusterctl.fleet.node import Gpu, Guid, Hca, Serial
from clusterctl.fleet.state import summarise
from tests.fleet.people import LATER, WARM, after, node, reported

LATECOMERS = ("stopped_by", "hold", "waivers", "former_serials", "boot_mac")


def test_a_state_without_people_reads_as_one_that_nobody_decided_about() -> None:
    """What an older program stored has none of the later fields."""
    state = node()
    old = {key: value for key, value in json.loads(state_to_json(state)).items() if key not in LATECOMERS}
    assert state_from_json(json.dumps(old)) == state
    line = {key: value for key, value in json.loads(summary_to_json(state)).items() if key not in LATECOMERS}
    assert summary_from_json(json.dumps(line)) == summarise(state)


def test_decisions_come_back_whole() -> None:
    """Hold and waiver, with actor, reason and times."""
    state = reported(node(), "burnin", WARM)
    state = after(state, [*hold(state, "x", LATER).events, *waive(state, "gpu_ecc", "", "y", LATER).events])
    assert state.hold
    assert state.waivers
    assert state_from_json(state_to_json(state)) == state
    assert summary_from_json(summary_to_json(state)) == summarise(state)


def test_an_inventory_of_an_older_program() -> None:
    """What it did not know is unmeasured, what we do not know any more is left out; the parts are the same."""
    old = {
        "manufacturer": "Example Inc.",
        "model": "GX-8000",
        "serial": "EX1",
        "psus_ok": True,
        "cpu_count": 2,
        "gpus": [{"slot": "GPU1", "model": "H100", "serial": "165", "pci": "0000:1b:00.0"}],
        "hcas": [{"slot": "IB1", "model": "CX7", "serial": None, "guid": "a088c20300000101", "firmware": "28.39"}],
        "drives": None,
    }
    found = inventory_from_data(old)
    assert found.gpus == (Gpu("GPU1", "H100", Serial("165"), "0000:1b:00.0"),)
    assert found.hcas == (Hca("IB1", "CX7", None, Guid("a088c20300000101"), "28.39"),)
    assert (found.cpus, found.dimms, found.fans, found.firmware, found.drives, found.stale) == (None,) * 5 + ("",)
