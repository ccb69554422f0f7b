"""pcie_chain: the links above GPUs and adapters, from their switch up to the processor, have full width and speed.

The link of the GPU or adapter itself is pcie_width's. A switch's link to the processor that was trained down halves the
bandwidth of all that is below the switch, and no tool of GPU or adapter reports it.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.pci import PciDevice, PciPort, PciTree
from clusterctl_burnin.check import Area, Check, Expected, inconclusive
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.probe import Readings, UnmeasuredError
from clusterctl_burnin.probes.lspci import (
    LSPCI,
    PCIE_SPEED_MIN,
    PCIE_WIDTH_MIN,
    PRIVILEGE,
    absent,
    endpoints,
    read_tree,
)

_NAME = "pcie_chain"
_REMEDY = (
    "power off, reseat the board of the PCIe switch and its cables, update the switch's firmware, then check the "
    "link again; if that does not help, replace the board"
)


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    tree = read_tree(readings)
    found = [*absent(_NAME, tree, expected)]
    links: dict[str, list[str]] = {}
    for subject, device in endpoints(tree, expected):
        try:
            for bridge in _upstream(tree, device):
                links.setdefault(bridge.address, []).append(subject)
        except UnmeasuredError as error:
            found.append(inconclusive(_NAME, error, subject))
    bridges = {device.address: device for device in tree.devices}
    for address, below in links.items():
        found.extend(_link(bridges[address], below, expected.limits))
    yield from found
    if not found:
        cause = f"{len(links)} links above GPUs and adapters have full width and speed"
        yield passed(_NAME, cause)


def _upstream(tree: PciTree, device: PciDevice) -> Iterator[PciDevice]:
    """Yield the upstream ports of switches above a device, each with the link to the next one."""
    above = tree.above(device)
    if not above or any(bridge.port is None for bridge in above):
        raise UnmeasuredError(f"lspci does not show what {device.address} is connected to", remedy=PRIVILEGE)
    if above[-1].port is not PciPort.ROOT:
        raise UnmeasuredError(f"lspci shows no root port above {device.address}", remedy="read lspci -t on the node")
    yield from (bridge for bridge in above if bridge.port is PciPort.UPSTREAM)


def _link(bridge: PciDevice, below: list[str], limits: Limits) -> Iterator[Finding]:
    subject, want = f"pci {bridge.address}", f"x{limits[PCIE_WIDTH_MIN]} at {limits[PCIE_SPEED_MIN]} GT/s"
    if bridge.current is None:
        error = UnmeasuredError(f"lspci does not show the link of {bridge.address}", remedy=PRIVILEGE)
        yield inconclusive(_NAME, error, subject)
    elif bridge.current.width < limits[PCIE_WIDTH_MIN].value or bridge.current.speed < limits[PCIE_SPEED_MIN].value:
        cause = f"the link of the PCIe switch above {', '.join(below)} is narrower or slower than its limit"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.PCIE_LINK_POOR,
            subject=subject,
            cause=cause,
            measured=str(bridge.current),
            expected=want,
            remedy=_REMEDY,
        )


CHECK = Check(
    _NAME,
    (LSPCI,),
    _judge,
    area=Area.PCIE,
    limits=(
        PCIE_WIDTH_MIN,
        PCIE_SPEED_MIN,
    ),
)
