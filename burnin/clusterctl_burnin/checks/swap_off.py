"""swap_off: no swap is on; a training process that swaps stalls all the others."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.formats.host.linux import parse_swaps
from clusterctl_burnin.check import Area, Check, Expected
from clusterctl_burnin.probe import Probe, Readings

SWAPON = Probe("swapon", ("swapon", "--show=NAME,SIZE", "--bytes", "--noheadings"))
_NAME = "swap_off"


def _judge(readings: Readings, _expected: Expected) -> Iterator[Finding]:
    swaps = parse_swaps(readings.text(SWAPON))
    for name, size in swaps:
        cause, remedy = f"{name} is used as swap", "run swapoff -a, take it out of /etc/fstab, configure the node again"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            cause=cause,
            measured=f"{size / 2**30:.1f}",
            expected="0",
            unit="GiB",
            remedy=remedy,
        )
    if not swaps:
        yield passed(_NAME, "no swap is on", measured="0", expected="0", unit="GiB")


CHECK = Check(_NAME, (SWAPON,), _judge, area=Area.STORAGE)
