"""hca_link: every port of the compute fabric is active, at the SKU's rate."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.infiniband.adapters import Adapter, IbPort
from clusterctl_burnin.check import Area, Check, Expected
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.ibstat import ETHERNET, IBSTAT, compute_adapters
from clusterctl_burnin.probes.nvidia_smi import missing

_NAME = "hca_link"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    adapters = compute_adapters(readings, expected.sku)
    rate = expected.sku.hca_rate_gbps
    bad = [f for adapter in adapters for port in adapter.ports for f in _bad(adapter, port, rate)]
    yield from bad
    absent = tuple(missing(_NAME, len(adapters), expected.sku.hca_count, "adapters"))
    yield from absent
    if not bad and not absent:
        yield passed(_NAME, "all ports are active", measured=Quantity(rate, "Gb/s"), expected=exactly(rate, "Gb/s"))


def _bad(adapter: Adapter, port: IbPort, rate: int) -> Iterator[Finding]:
    subject = adapter.name if len(adapter.ports) == 1 else f"{adapter.name} port {port.number}"
    if not port.up:
        cause, remedy = _down(port)
        seen = f"{port.state}, {port.physical}"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.HCA_PORT_DOWN,
            subject=subject,
            cause=cause,
            measured=seen,
            expected="Active, LinkUp",
            remedy=remedy,
            deterministic=False,
        )
    elif port.rate != rate:
        cause = "the port runs at another rate than the SKU's"
        remedy = "clean or replace the cable or transceiver; check that both ends support the rate"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.HCA_RATE,
            subject=subject,
            cause=cause,
            measured=Quantity(port.rate, "Gb/s"),
            expected=exactly(rate, "Gb/s"),
            remedy=remedy,
        )


def _down(port: IbPort) -> tuple[str, str]:
    """Return why a port is not active, as far as the host knows, and what to do."""
    if port.link_layer == ETHERNET and port.physical == "LinkUp":
        return "the link is up, and the network interface is not", "set the interface up (ip link, netplan)"
    if port.physical == "LinkUp":
        return "the link is up, but no subnet manager has configured the port", "check that the subnet manager runs"
    if port.physical == "Disabled":
        enable = (
            "set its interface up (ip link set up)" if port.link_layer == ETHERNET else "enable it with ibportstate"
        )
        return "the port is disabled", f"{enable} or mlxlink"
    return "the port finds no link partner", (
        "check that the cable is plugged in at both ends, reseat it, then replace it"
    )


CHECK = Check(_NAME, (IBSTAT,), _judge, area=Area.INFINIBAND)
