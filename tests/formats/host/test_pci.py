"""The PCI tree: of a recorded server, and where lspci shows less."""

from __future__ import annotations

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.host.pci import PciPort, parse_pci_tree
from tests.formats.samples import sample


def test_a_recorded_server() -> None:
    """Above each H100 and ConnectX-7: a port of a switch, the switch's upper port, a root port, all x16 at 32 GT/s; no
    switch redirects anything, nothing is behind an IOMMU.
    """
    tree = parse_pci_tree(sample("lspci-vvv.gz"))
    assert len(tree.devices) == 517
    for name in ("NVIDIA Corporation Device 2330", "MT2910 Family [ConnectX-7]"):
        parts = [device for device in tree.devices if name in device.name]
        assert len(parts) == 8
        for part in parts:
            above = tree.above(part)
            assert [bridge.port for bridge in above] == [PciPort.DOWNSTREAM, PciPort.UPSTREAM, PciPort.ROOT]
            assert {str(bridge.current) for bridge in above} == {"x16 at 32 GT/s"}
            assert [bridge.redirects for bridge in above] == [(), None, ()]
            assert part.iommu_group is None


def test_without_privileges_nothing_is_assumed() -> None:
    """No capability is shown: no kind of port, no link, no ACS."""
    (device,) = parse_pci_tree("0000:15:01.0 PCI bridge: Intel 352a\n\tCapabilities: <access denied>\n").devices
    assert (device.port, device.current, device.redirects) == (None, None, None)


def test_a_loop_of_bridges_ends() -> None:
    """Text that makes no sense does not hang the parser."""
    loop = "0000:01:00.0 PCI bridge: x y\n\tBus: primary=01, secondary=01, subordinate=01\n"
    tree = parse_pci_tree(loop)
    assert tree.above(tree.devices[0]) == tree.devices


@pytest.mark.parametrize("text", ["", "lspci: no\n"])
def test_no_device_is_no_tree(text: str) -> None:
    """Refused."""
    with pytest.raises(ParseError):
        parse_pci_tree(text)
