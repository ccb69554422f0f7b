"""cpu_count: the node has as many working processors as its SKU, with all their cores.

CPUs that the kernel does not use are a warning: a site may switch SMT or single CPUs off on purpose. A whole processor
without a CPU in use fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.host.cpu_memory import KernelCpus, ProcessorSocket, parse_lscpu, parse_processors
from clusterctl_burnin.check import Area, Check, Expected
from clusterctl_burnin.checks.cpu_frequency import LSCPU
from clusterctl_burnin.probe import Probe, Readings

PROCESSORS = Probe("processors", ("dmidecode", "-t", "4"), role="base")
_NAME = "cpu_count"
_LOOK = "read lscpu and the kernel's command line (nosmt, maxcpus); look in the kernel log"
_REPLACE = "let the vendor's technician reseat or replace the processor"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    sockets = parse_processors(readings.text(PROCESSORS))
    working, wanted = sum(socket.works for socket in sockets), expected.sku.cpu_count
    if working != wanted:
        yield _wrong_count(sockets, working, wanted)
        return
    all_there = passed(
        _NAME,
        "all processors are there",
        measured=Quantity(working, "processors"),
        expected=exactly(wanted, "processors"),
    )
    yield from (*_without_cores(sockets), *_offline(readings, wanted)) or (all_there,)


def _wrong_count(sockets: Sequence[ProcessorSocket], working: int, wanted: int) -> Finding:
    others = ", ".join(f"{socket.designation} {socket.status}" for socket in sockets if not socket.works)
    cause = f"{working} of {wanted} processors work" + (f": {others}" if others else "")
    remedy = _REPLACE
    if working > wanted:
        remedy = "check that the node has its SKU's model; correct the SKU if it has not"
    elif any("Disabled" in socket.status for socket in sockets if not socket.works):
        remedy = (
            "find the reason in the BMC's event log, and enable the processor in the BIOS setup; if it stays "
            f"off, {remedy}"
        )
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.CPU_COUNT,
        cause=cause,
        measured=Quantity(working, "processors"),
        expected=exactly(wanted, "processors"),
        remedy=remedy,
    )


def _without_cores(sockets: Sequence[ProcessorSocket]) -> Iterator[Finding]:
    for socket in sockets:
        if socket.works and socket.cores and socket.cores_enabled is not None and socket.cores_enabled < socket.cores:
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.CPU_CORES_OFF,
                subject=socket.designation or "cpu",
                cause=f"{socket.cores_enabled} of {socket.cores} cores of the processor are enabled",
                measured=Quantity(socket.cores_enabled, "cores"),
                expected=exactly(socket.cores, "cores"),
                remedy=f"enable all cores in the BIOS setup; if they stay off, {_REPLACE}",
            )


def _offline(readings: Readings, wanted: int) -> Iterator[Finding]:
    cpus = parse_lscpu(readings.text(LSCPU))
    if cpus.offline:
        count, total = len(cpus.offline), len(cpus.offline) + len(cpus.online)
        verdict, why = _weight_of_offline(cpus, wanted)
        yield Finding(
            check=_NAME,
            verdict=verdict,
            code=Code.CPUS_OFFLINE,
            cause=f"the kernel does not use {count} of {total} CPUs{why}",
            measured=Quantity(len(cpus.online), "CPUs"),
            expected=exactly(total, "CPUs"),
            remedy=_LOOK,
        )


def _weight_of_offline(cpus: KernelCpus, wanted: int) -> tuple[Verdict, str]:
    """Return the verdict on CPUs that are off, and what it rests on: is a whole processor among them?"""
    if cpus.sockets is not None:
        lost = cpus.sockets < wanted
        why = f": only {cpus.sockets} of {wanted} processors are in use"
        return (Verdict.FAIL, why) if lost else (Verdict.WARN, "")
    if len(cpus.offline) * wanted >= len(cpus.offline) + len(cpus.online):
        return Verdict.INCONCLUSIVE, ": as many as a whole processor has, and lscpu does not report the sockets in use"
    return Verdict.WARN, ""


CHECK = Check(_NAME, (PROCESSORS, LSCPU), _judge, area=Area.PROCESSOR)
