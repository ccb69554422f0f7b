"""Adapters that report too little power in their PCIe slot, in a node and over its fleet.

On whole fleets of healthy machines all adapters report it, or those in some slots: what the slot advertises is wrong.
Where one node's slot differs from the same slot of the others, a power lead is missing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.kernel_log import Message
from clusterctl_burnin.fleet_stats import Bad, Metric

LOW_POWER = "Detected insufficient power on the PCIe slot"
ADAPTER = re.compile(r"^mlx5_core (?P<pci>\S+): firmware version: (?P<kind>\d+)\.")
ADAPTER_LINE = re.compile(r"mlx5_core (?P<pci>\S+): firmware version: ")
"""The same within a line of the log."""
_LOW_POWER_OF = re.compile(r"mlx5_core(?: (?P<pci>[0-9a-f:.]+))?:.*" + LOW_POWER)
_SLOT = "check that the slot's or riser's power lead is plugged in"
SLOT_POWER = Metric("slot_power", "reports", Bad.HIGH, 0.0, 1.0, _SLOT, yes_no=True)
"""1 for an adapter that reports too little power, else 0."""
_IF_SLOW = f"if its bandwidth is low, {_SLOT}"


def slot_power(check: str, messages: Iterable[Message], starts: Iterable[Message]) -> Iterator[Finding]:
    """Yield the adapters that report too little power: the odd ones of their kind in this node fail, others warn.

    `starts` are messages with the firmware's version, which begins with the kind of the adapter.
    """
    low = {match["pci"] or "" for message in messages if (match := _LOW_POWER_OF.search(message.text))}
    kinds = {match["pci"]: match["kind"] for message in starts if (match := ADAPTER.match(message.text))}
    for pci in sorted(low):
        silent = {other for other, kind in kinds.items() if kind == kinds.get(pci)} - low
        if silent:
            cause = (
                f"the adapter's slot gives too little power; {len(silent)} other adapters of its kind do not report it"
            )
        else:
            cause = "the adapter's slot advertises too little power, as those of all adapters of its kind in this node"
        yield Finding(
            check=check,
            verdict=Verdict.FAIL if silent else Verdict.WARN,
            code=Code.SLOT_POWER_LOW,
            subject=f"hca {pci}".rstrip(),
            cause=cause,
            remedy=_SLOT if silent else _IF_SLOW,
        )


def adapters(log: str) -> dict[str, bool]:
    """Return by PCI address, of each adapter that the log shows to start, whether it reports too little power."""
    started = dict.fromkeys((match["pci"] for match in ADAPTER_LINE.finditer(log)), False)
    low = {match["pci"] for match in _LOW_POWER_OF.finditer(log)} if LOW_POWER in log else set()
    return {pci: pci in low for pci in started}


def odd_in_node(findings: Iterable[Finding]) -> bool:
    """Return whether an adapter reports it that others of its kind in the node do not."""
    return any(one.code is Code.SLOT_POWER_LOW and one.verdict is Verdict.FAIL for one in findings)


def settled(findings: Iterable[Finding], shared: Collection[str]) -> list[Finding]:
    """Return the findings; what the same slots of other nodes report too (`shared`: subjects) is a warning."""
    return [
        replace(
            one,
            verdict=Verdict.WARN,
            cause="the adapter's slot advertises too little power, as the same slot of other nodes of this SKU",
            remedy=_IF_SLOW,
        )
        if one.code is Code.SLOT_POWER_LOW and one.verdict is Verdict.FAIL and one.subject in shared
        else one
        for one in findings
    ]


def accepted_slots(findings: Iterable[Finding]) -> frozenset[str]:
    """Return the adapters that a burn-in has warned of and let pass: later checks of the node warn of them, too."""
    return frozenset(one.subject for one in findings if one.code is Code.SLOT_POWER_LOW and one.verdict is Verdict.WARN)
