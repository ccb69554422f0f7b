"""clock_offset: the node's clock agrees with the controller's, within one SSH round trip."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.probe import Readings

CLOCK_OFFSET_MAX = LimitKey(
    "clock_offset_max",
    "s",
    default=1,
    source="own choice; events of several nodes must sort by time; one SSH round trip is the error of measurement",
)


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    """Judge the clock. The node worked between `sent` and `received`: its times outside bound the offset from below."""
    early = max(timedelta(), expected.sent - readings.started)
    late = max(timedelta(), readings.finished - expected.received)
    offset = max(early, late).total_seconds()
    limit = expected.limits[CLOCK_OFFSET_MAX]
    wrong = offset > limit.value
    yield Finding(
        check="clock_offset",
        verdict=Verdict.FAIL if wrong else Verdict.PASS,
        code=Code.CLOCK_OFFSET if wrong else Code.PASSED,
        cause=(
            f"the node's clock is {'behind' if early else 'ahead of'} the controller's" if wrong else "the clock agrees"
        ),
        measured=limit.quantity(offset),
        expected=limit.at_most,
        remedy="check that chrony or systemd-timesyncd runs on the node and reaches its time server" if wrong else "",
        deterministic=False,
    )


CHECK = Check("clock_offset", (), _judge, area=Area.NODE, limits=(CLOCK_OFFSET_MAX,), causes=(Cause("identity"),))
