"""swap_off: no swap is on; a training process that swaps stalls all the others."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.host.linux import parse_swaps
from clusterctl_burnin.check import Area, Check, Expected
from clusterctl_burnin.probe import Probe, Readings

SWAPON = Probe("swapon", ("swapon", "--show=NAME,SIZE", "--bytes", "--noheadings"))
_NAME = "swap_off"


def _judge(readings: Readings, _expected: Expected) -> Iterator[Finding]:
    swaps = parse_swaps(readings.text(SWAPON))
    for name, size in swaps:
        cause, remedy = (
            f"{name} is used as swap",
            ("run swapoff -a, remove swap from /etc/fstab, configure the node again"),
        )
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.SWAP_ON,
            cause=cause,
            measured=Quantity(size / 2**30, "GiB"),
            expected=exactly(0, "GiB"),
            remedy=remedy,
        )
    if not swaps:
        yield passed(_NAME, "no swap is on", measured=Quantity(0, "GiB"), expected=exactly(0, "GiB"))


CHECK = Check(_NAME, (SWAPON,), _judge, area=Area.STORAGE)
