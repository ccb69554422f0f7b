"""roce: every adapter in Ethernet mode has a RoCE v2 address, and all have the same flow control, ECN and MTU.

For SKUs with adapters of link layer Ethernet; InfiniBand adapters need none of it. Which flow control (PFC) and ECN
are right depends on the fabric: an adapter that differs from most of the node is wrong. Loss that they fail to prevent
shows under load as low bandwidth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.infiniband.roce import RocePort, parse_roce_ports
from clusterctl_burnin.check import Area, Cause, Check, Expected, inconclusive
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError
from clusterctl_burnin.probes.ibstat import ETHERNET, IBSTAT, compute_adapters
from clusterctl_burnin.probes.nvidia_smi import missing

PORTS = Probe("roce_ports", ("roce-ports",), timeout=30.0)
_NAME = "roce"
_SETTINGS: tuple[tuple[str, Callable[[RocePort], object]], ...] = (
    ("PFC priorities", lambda port: port.pfc),
    ("ECN priorities", lambda port: port.ecn),
    ("MTU", lambda port: port.mtu),
)
_ADDRESS = "give the adapter's network interface an IP address (netplan or networkd), then run the burn-in again"
_ALIKE = "set it as on the node's other adapters (dcb, mlnx_qos, cma_roce_tos), and as on the switch port"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    names = {adapter.name for adapter in compute_adapters(readings, expected.sku)}
    ports = [port for port in parse_roce_ports(readings.text(PORTS)) if port.name in names]
    if expected.sku.hca_link_layer != ETHERNET:
        absent = tuple(missing(_NAME, len(names), expected.sku.hca_count, "adapters"))
        yield from absent or (passed(_NAME, "the adapters of the compute fabric are in InfiniBand mode"),)
        return
    found = [*_addresses(ports), *missing(_NAME, len(ports), expected.sku.hca_count, "adapters")]
    for what, of in _SETTINGS:
        found += _unlike(what, ports, of)
    yield from found
    if not found:
        yield passed(_NAME, "all adapters have a RoCE v2 address and the same settings", measured=_settings(ports[0]))


def _addresses(ports: Iterable[RocePort]) -> Iterator[Finding]:
    for port in ports:
        if port.gid_index is not None:
            continue
        error = UnmeasuredError(f"{port.name} has no routable RoCE v2 GID", remedy=_ADDRESS)
        yield inconclusive(_NAME, error, port.name)


def _unlike(what: str, ports: Sequence[RocePort], of: Callable[[RocePort], object]) -> Iterator[Finding]:
    values = Counter(of(port) for port in ports)
    if len(values) < 2:
        return
    usual, times = values.most_common(1)[0]
    if times * 2 <= len(ports):
        return
    for port in ports:
        if of(port) != usual:
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.ROCE_SETTINGS_DIFFER,
                subject=port.name,
                cause=f"the adapter's {what} differ from most adapters of the node",
                measured=_word(of(port)),
                expected=_word(usual),
                remedy=_ALIKE,
            )


def _word(value: object) -> str:
    if value is None:
        return "not reported"
    return ", ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def _settings(port: RocePort) -> str:
    return f"PFC {_word(port.pfc)}; ECN {_word(port.ecn)}; MTU {_word(port.mtu)}; GID index {port.gid_index}"


CHECK = Check(_NAME, (IBSTAT, PORTS), _judge, area=Area.INFINIBAND, causes=(Cause("hca_count"), Cause("hca_link")))
