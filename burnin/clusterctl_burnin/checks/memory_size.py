"""memory_size: all memory modules are there, and the kernel uses them."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, at_least
from clusterctl.formats.host.cpu_memory import MemoryModule, parse_memory_modules
from clusterctl.formats.host.linux import parse_memory_total
from clusterctl_burnin.check import Area, Check, Expected
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.probe import Probe, Readings

MEMORY_USABLE_MIN = LimitKey("memory_usable_min", "%")

MODULES = Probe("memory_modules", ("dmidecode", "-t", "17"), role="base")
MEMINFO = Probe("meminfo", ("cat", "/proc/meminfo"))
_NAME = "memory_size"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    modules = parse_memory_modules(readings.text(MODULES))
    installed, usable = sum(m.gib for m in modules), parse_memory_total(readings.text(MEMINFO))
    floor = expected.limits[MEMORY_USABLE_MIN].value / 100 * installed
    if installed < expected.sku.memory_gib:
        yield _short(modules, installed, expected.sku.memory_gib)
    elif usable < floor:
        cause = "the kernel uses less memory than is installed: the firmware has disabled a module"
        remedy = "look for a failed memory module in the BMC's event log, reseat or replace it"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.MEMORY_MAPPED_OUT,
            cause=cause,
            measured=Quantity(usable, "GiB"),
            expected=at_least(floor, "GiB"),
            remedy=remedy,
        )
    else:
        yield passed(
            _NAME,
            "all memory is there",
            measured=Quantity(installed, "GiB"),
            expected=at_least(expected.sku.memory_gib, "GiB"),
        )


def _short(modules: tuple[MemoryModule, ...], installed: float, wanted: int) -> Finding:
    empty = ", ".join(m.locator for m in modules if not m.gib) or "none"
    cause = f"the node has less memory than its SKU; empty slots: {empty}"
    remedy = "check that each slot of the SKU holds its module; reseat or replace missing modules"
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.MEMORY_MISSING,
        cause=cause,
        measured=Quantity(installed, "GiB"),
        expected=at_least(wanted, "GiB"),
        remedy=remedy,
    )


CHECK = Check(_NAME, (MODULES, MEMINFO), _judge, area=Area.MEMORY, limits=(MEMORY_USABLE_MIN,))
