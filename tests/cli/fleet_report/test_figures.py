"""Figures over the fleet: what has a number and a unit, with what did not pass marked; small pictures of them."""

from __future__ import annotations

import math
from datetime import timedelta

from clusterctl.fleet.finding import Finding, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.quantity import Quantity, at_least, at_most
from clusterctl.fleet.reporting.figures import ReportFigure, Value, figures
from clusterctl.fleet.state import NodeState
from clusterctl.operations.node_case import Moment
from clusterctl_cli.fleet_report.strips import HEIGHT, WIDTH, stretches, strip
from tests.steps.fakes import NOW


def node(name: str, *findings: Finding, sku: str = "h100") -> NodeState:
    return NodeState(NodeId(name), name, sku=sku, reports={"burnin": Report("burnin", "bootstrap", findings)})


def speed(value: Quantity | float | str | None, verdict: Verdict = Verdict.PASS) -> Finding:
    measured = Quantity(value, "Gb/s") if isinstance(value, float | int) else value
    bound = at_least(380, "Gb/s")
    return Finding(check="ib_write_bw", verdict=verdict, code=Code.LOAD_SLOW, measured=measured, expected=bound)


def test_values_ascend_and_the_bad_ones_are_marked() -> None:
    """The median is of all values; the bad one keeps its node."""
    (one,) = figures([node("n1", speed(392)), node("n2", speed(210, Verdict.FAIL)), node("n3", speed(391))])
    assert (one.check, one.unit, one.limit, one.nodes) == ("ib_write_bw", "Gb/s", 380.0, 3)
    assert [value.value for value in one.values] == [210.0, 391.0, 392.0]
    assert (one.lowest, one.median, one.highest) == (210.0, 391.0, 392.0)
    assert [value.node for value in one.bad] == ["n2"]


def test_what_was_not_measured_is_no_figure() -> None:
    """Words, nothing, a number without a unit, infinity, and NOT_APPLICABLE add nothing to a distribution."""
    nothing = [
        *(speed("Xid 79"), speed(None), speed(Quantity(3)), speed(math.inf)),
        speed(1, Verdict.NOT_APPLICABLE),
    ]
    assert figures([node("n1", *nothing)]) == ()


def test_unlike_machines_are_not_mixed() -> None:
    """Each SKU has a distribution of its own; two limits of one check are not given as one."""
    two = figures([node("n1", speed(392)), node("n2", speed(196), sku="a100")])
    assert [(one.sku, one.median) for one in two] == [("a100", 196.0), ("h100", 392.0)]
    other = Finding(
        check="ib_write_bw",
        verdict=Verdict.PASS,
        code=Code.PASSED,
        measured=Quantity(390, "Gb/s"),
        expected=at_least(360, "Gb/s"),
    )
    (one,) = figures([node("n1", speed(392)), node("n2", other)])
    assert (one.bound, one.limit) == (None, None)


def test_a_strip_has_every_value_and_the_limit_on_its_axis() -> None:
    """Bars count all values; bad ones, limit and median lie within the picture, the limit left of what keeps it."""
    values = tuple(Value(f"n{at}", "node", 390.0 + at, bad=False) for at in range(9))
    drawn = strip(
        ReportFigure(
            "ib_write_bw", "h100", "Gb/s", at_least(380, "Gb/s"), (Value("bad", "mlx5_1", 200.0, bad=True), *values)
        )
    )
    assert sum(int(bar.description.split()[0]) for bar in drawn.bars) == 10
    assert all(0 <= bar.x < WIDTH and 0 < bar.height <= HEIGHT for bar in drawn.bars)
    assert drawn.limit is not None
    assert 0 < drawn.bad[0][0] < drawn.limit < drawn.median < WIDTH
    assert drawn.bad[0][1] == "bad mlx5_1: 200 Gb/s"


def test_one_value_alone_can_be_drawn() -> None:
    """Also where that is zero, and no axis begins below it."""
    drawn = strip(ReportFigure("gpu_ecc", "", "errors", at_most(0, "errors"), (Value("n1", "gpu 3", 0.0, bad=False),)))
    assert (len(drawn.bars), drawn.low) == (1, 0.0)


def test_a_time_line_fills_its_width() -> None:
    """Stretches follow each other, each wide enough to be seen, the last one ending now."""
    moments = [Moment(NOW, "→ cabled", "x", "way"), Moment(NOW + timedelta(days=9), "→ gold", "x", "good")]
    first, last = stretches(moments, NOW + timedelta(days=9, seconds=1))
    assert (first.x, first.x + first.width) == (0.0, last.x)
    assert last.width >= 3
    assert round(last.x + last.width, 6) == WIDTH
    assert stretches([], NOW) == ()
