"""An approval holds for what was asked: another reason, part or serial needs another one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from clusterctl.fleet.decisions.permissions import PowerOrder
from clusterctl.fleet.errors import ConflictError
from clusterctl.fleet.event import Stream
from clusterctl.operations import decisions, power, rma
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.decisions import Decision, DecisionRequest
from clusterctl.operations.operation import Control, Effect, Preview
from clusterctl.operations.power import PowerRequest
from clusterctl.operations.rma import RmaAction, RmaRequest
from tests.cli.site_of_three import write

PREVIEW = Preview(operation="hold", question="Go on?", effects=(Effect(node="n1", text="is held"),))


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request with a secret."""

    nodes: tuple[str, ...] = ("n1",)
    reason: str = "a fan"
    password: str = field(default="", repr=False)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SiteContext]:
    opened = open_site(write(tmp_path))
    yield opened
    opened.journal.close()


def test_a_preview_is_bound_to_each_field_of_its_request() -> None:
    """Except a secret: the digest is printed, and a guess could be compared with it."""
    shown = PREVIEW.of(Asked())
    assert shown.digest == PREVIEW.of(Asked(password="x")).digest
    others = {PREVIEW.digest, PREVIEW.of(Asked(reason="b")).digest, PREVIEW.of(Asked(nodes=("n1", "n2"))).digest}
    assert len(others | {shown.digest}) == 4


def test_an_approved_reason_or_serial_serves_for_no_other(context: SiteContext) -> None:
    """Of decisions, returns to the vendor, and power; nothing is written."""
    hold = DecisionRequest(decision=Decision.HOLD, nodes=("n1",), reason="a fan")
    free = DecisionRequest(decision=Decision.RELEASE, nodes=("n2",), reason="repaired; new part has serial 1")
    opened = RmaRequest(action=RmaAction.OPEN, part="1650", node="n2", case="4711", reason="2 errors")
    off = PowerRequest(order=PowerOrder.OFF, nodes=("n2",), reason="a fan")
    last = max(event.seq for event in context.journal.history(Stream.NODE, "id-n2"))
    for operation, request, other in (
        (decisions, hold, replace(hold, reason="another fan")),
        (decisions, free, replace(free, reason="repaired; new part has serial 2")),
        (rma, opened, replace(opened, reason="3 errors")),
        (power, off, replace(off, reason="another fan")),
    ):
        approved = operation.preview(context, request)
        assert operation.preview(context, replace(request)).digest == approved.digest
        assert operation.preview(context, other).digest != approved.digest
        with pytest.raises(ConflictError):
            operation.run(context, other, Control(approved.digest))
    assert max(event.seq for event in context.journal.history(Stream.NODE, "id-n2")) == last
