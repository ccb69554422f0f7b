"""cpu_count: as many processors as the SKU says are plugged in and switched on."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.host.cpu_memory import parse_processors
from clusterctl_burnin.check import Area, Check, Expected
from clusterctl_burnin.probe import Probe, Readings

PROCESSORS = Probe("processors", ("dmidecode", "-t", "4"), role="base")
_NAME = "cpu_count"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    sockets = parse_processors(readings.text(PROCESSORS))
    working, wanted = sum(socket.works for socket in sockets), expected.sku.cpu_count
    if working == wanted:
        yield passed(
            _NAME,
            "all processors are there",
            measured=Quantity(working, "processors"),
            expected=exactly(wanted, "processors"),
        )
        return
    others = ", ".join(f"{socket.designation} {socket.status}" for socket in sockets if not socket.works)
    cause = f"{working} of {wanted} processors work" + (f": {others}" if others else "")
    remedy = "let the vendor's technician reseat or replace the processor"
    if any("Disabled" in socket.status for socket in sockets if not socket.works):
        remedy = (
            "find the reason in the BMC's event log, and enable the processor in the BIOS setup; if it stays "
            f"off, {remedy}"
        )
    if working > wanted:
        remedy = "check that the node has its SKU's model; correct the SKU if it has not"
    yield Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.CPU_COUNT,
        cause=cause,
        measured=Quantity(working, "processors"),
        expected=exactly(wanted, "processors"),
        remedy=remedy,
    )


CHECK = Check(_NAME, (PROCESSORS,), _judge, area=Area.PROCESSOR)
