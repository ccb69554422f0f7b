"""identity: the host that answered is the machine that the BMC described."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl_burnin.check import Area, Check, Expected
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

SERIAL = Probe("system_serial", ("dmidecode", "-s", "system-serial-number"), role="base")
_REMEDY = "compare the machine's service tag with the site's list of nodes: address or cabling of the BMC is mixed up"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    lines = [line.strip() for line in readings.text(SERIAL).splitlines() if not line.startswith("#")]
    serial = lines[-1] if lines else ""
    if not serial:
        raise UnmeasuredError("the node's firmware reports no serial number", remedy="set it with the vendor's tool")
    host = readings.host.split(".")[0]
    if serial.upper() != expected.serial.upper():
        cause = f"another machine answers at the address of {expected.name}"
        yield Finding(
            check="identity",
            verdict=Verdict.FAIL,
            code=Code.WRONG_SERIAL,
            cause=cause,
            measured=serial,
            expected=str(expected.serial),
            remedy=_REMEDY,
        )
    elif host != expected.name:
        cause = "the machine is the right one, but the host name is another node's"
        remedy = f"install or configure {expected.name} again"
        yield Finding(
            check="identity",
            verdict=Verdict.FAIL,
            code=Code.WRONG_HOST_NAME,
            cause=cause,
            measured=host,
            expected=expected.name,
            remedy=remedy,
            serial=serial,
        )
    else:
        yield passed("identity", "serial number and host name are the node's", serial=serial)


CHECK = Check("identity", (SERIAL,), _judge, area=Area.NODE)
