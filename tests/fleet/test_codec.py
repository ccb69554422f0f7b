"""Payloads and states come back from JSON as they were."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.fleet.acts import DETAILS, Act, Details
from clusterctl.fleet.codec import (
    inventory_from_data,
    inventory_to_data,
    payload_from_json,
    payload_to_json,
    payload_types,
    state_from_json,
    state_to_json,
    summary_from_json,
    summary_to_json,
)
from clusterctl.fleet.decisions.decision import hold, waive
from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError
from clusterctl.fleet.event import Kind, Payload
from clusterctl.fleet.node import Gpu, Guid, Hca, Inventory, Serial
from clusterctl.fleet.payloads.maintenance import MaintenanceOrdered
from clusterctl.fleet.payloads.node import ActIntended, Figure
from clusterctl.fleet.state import summarise
from tests.fleet.people import LATER, WARM, after, node, reported


def test_decisions_come_back_whole() -> None:
    """Hold and waiver, with actor, reason and times."""
    state = reported(node(), "burnin", WARM)
    state = after(state, [*hold(state, "x", LATER).events, *waive(state, "gpu_ecc", "", "y", LATER).events])
    assert state.hold
    assert state.waivers
    assert state_from_json(state_to_json(state)) == state
    assert summary_from_json(summary_to_json(state)) == summarise(state)


def test_an_inventory_comes_back_whole() -> None:
    """What the BMC did not report is still unmeasured."""
    found = Inventory(
        "Example Inc.",
        "GX-8000",
        Serial("EX1"),
        cpu_count=2,
        gpus=(Gpu("GPU1", "H100", Serial("165"), "0000:1b:00.0"),),
        hcas=(Hca("IB1", "CX7", None, Guid("a088c20300000101"), "28.39"),),
    )
    assert inventory_from_data(inventory_to_data(found)) == found
    assert found.drives is None


def test_every_kind_has_a_payload() -> None:
    """Each kind of event has one payload type, which names the kind and its version."""
    assert payload_types().keys() == set(Kind)
    assert all(payload.kind is kind and payload.version >= 1 for kind, payload in payload_types().items())


RECORDS = st.dictionaries(st.text(), st.text() | st.integers())


def _details(kind: type[Details]) -> st.SearchStrategy[Details]:
    more = {"attributes": st.dictionaries(st.text(), st.text()), "gbps": FINITE}
    return st.builds(kind, **{field.name: more[field.name] for field in fields(kind) if field.name in more})


FINITE = st.floats(allow_nan=False, allow_infinity=False)
DETAILED = st.sampled_from(Act).flatmap(
    lambda act: st.builds(
        ActIntended, act=st.just(act), details=_details(DETAILS[act]) if act in DETAILS else st.none()
    )
)
OPEN: dict[str, st.SearchStrategy[object]] = {
    "record": RECORDS,
    "request": RECORDS,
    "skipped": st.dictionaries(st.text(), st.text()),
    "stuck": st.dictionaries(st.text(), st.text()),
    "figures": st.lists(st.builds(Figure, value=FINITE)).map(tuple),
    "inventory": st.builds(Inventory, memory_gib=st.none() | FINITE),
}


def payloads(kind: type[Payload]) -> st.SearchStrategy[Payload]:
    if kind is ActIntended:
        return DETAILED
    opened = {**OPEN, "plan": RECORDS} if kind is MaintenanceOrdered else OPEN
    return st.builds(kind, **{field.name: opened[field.name] for field in fields(kind) if field.name in opened})


@given(st.sampled_from(list(payload_types().values())).flatmap(payloads))
def test_payloads_come_back_whole(payload: Payload) -> None:
    """Whatever a payload holds, the journal gives it back; it has a line for operators."""
    assert payload_from_json(1, payload.kind.value, payload.version, payload_to_json(payload)) == payload
    assert str(payload)


@pytest.mark.parametrize(
    ("text", "field"),
    [("{}", "reason"), ('{"reason": "x", "more": 1}', "more"), ('{"reason": 7}', "reason"), ("[", "payload")],
)
def test_a_malformed_payload_is_named(text: str, field: str) -> None:
    """The error names the event, its kind and the field."""
    with pytest.raises(EnvironmentBrokenError, match=f"hold.set is malformed: .*{field}") as error:
        payload_from_json(17, "hold.set", 1, text)
    assert error.value.where == "event 17"


@pytest.mark.parametrize(("kind", "version"), [("hold.set", 2), ("hold.dreamt", 1)])
def test_a_payload_of_a_newer_program_is_refused(kind: str, version: int) -> None:
    """A kind or version that this program does not know is never guessed at."""
    with pytest.raises(UsageError, match=f"{kind} version {version}"):
        payload_from_json(17, kind, version, "{}")
