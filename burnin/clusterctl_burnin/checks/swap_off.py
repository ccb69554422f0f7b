"""swap_off: no swap is on; a training process that swaps stalls all the others."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.formats.host.linux import parse_swaps
from clusterctl_burnin.check import Check, Expected
from clusterctl_burnin.probe import Probe, Readings

SWAPON = Probe("swapon", ("swapon", "--show=NAME,SIZE", "--bytes", "--noheadings"))
_NAME = "swap_off"


def _judge(readings: Readings, _expected: Expected) -> Iterator[Finding]:
    swaps = parse_swaps(readings.text(SWAPON))
    for name, size in swaps:
        cause, remedy = f"{name} is used as swap", "run swapoff -a, take it out of /etc/fstab, configure the node again"
        yield Finding(_NAME, Verdict.FAIL, "node", cause, f"{size / 2**30:.1f}", "0", "GiB", remedy)
    if not swaps:
        yield Finding(_NAME, Verdict.PASS, "node", "no swap is on", "0", "0", "GiB")


CHECK = Check(_NAME, (SWAPON,), _judge)
