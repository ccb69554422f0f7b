"""dnsmasq: its configuration, that it understands it, and that it answers our machines alone."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path

import pytest

from clusterctl.edges.pxe import dnsmasq as dnsmasq_process
from clusterctl.edges.pxe.addresses import found_in
from clusterctl.edges.pxe.dnsmasq import Dnsmasq, DnsmasqFiles, configuration, reservation
from clusterctl.edges.pxe.settings import Dhcp, PxeSettings
from clusterctl.fleet.errors import EnvironmentBrokenError
from tests.edges.pxe.kit import MAC

NETWORK = ipaddress.ip_network("192.0.2.0/24")
DATA = Path(__file__).parent / "data"


def settings(dhcp: Dhcp, **more: object) -> PxeSettings:
    message: dict[str, object] = {
        "interface": "prov0",
        "address": "192.0.2.1",
        "boot_folder": Path("/boot"),
        "dhcp": dhcp,
    }
    return PxeSettings(**(message | more))  # type: ignore[arg-type]


CASES = {
    "reserve": settings(Dhcp.RESERVE, gateway="192.0.2.254", nameservers=("192.0.2.53", "192.0.2.54")),
    "reserve-announcing": settings(Dhcp.RESERVE, announce=True, loader="ipxe.efi"),
    "proxy": settings(Dhcp.PROXY, announce=True),
}


@pytest.mark.parametrize("name", CASES)
def test_the_configuration(name: str, tmp_path: Path) -> None:
    """As it is written down, and dnsmasq itself understands it."""
    text = configuration(CASES[name], NETWORK, DnsmasqFiles(Path("/hosts"), Path("/leases"), Path("/boot/tftp")))
    golden = DATA / f"dnsmasq-{name}.conf"
    if os.environ.get("WRITE_GOLDENS"):
        golden.write_text(text)
    assert text == golden.read_text()
    file = tmp_path / "dnsmasq.conf"
    file.write_text(text)
    dnsmasq_process.test(file)


def test_a_configuration_that_is_none_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "dnsmasq.conf"
    file.write_text("port=0\ndhcp-range=nonsense\n")
    with pytest.raises(EnvironmentBrokenError, match="line 2"):
        dnsmasq_process.test(file)


def test_a_machine_is_known_by_all_its_cards() -> None:
    assert reservation("n1", (MAC,), "192.0.2.17") == "02:00:00:00:00:01,192.0.2.17,n1\n"
    assert reservation("n1", (MAC, MAC), "") == "02:00:00:00:00:01,02:00:00:00:00:01,n1\n"


def test_a_failed_start_is_reported_in_its_words(tmp_path: Path) -> None:
    """An interface that is not there, or a folder that is not: the controller's trouble, exit code 3."""
    file = tmp_path / "dnsmasq.conf"
    file.write_text(
        f"port=0\nenable-tftp\ntftp-root={tmp_path}/none\nlisten-address=127.0.0.1\nbind-interfaces\nuser=root\nlog-facility=-\npid-file=\n"
    )
    with pytest.raises(EnvironmentBrokenError, match=r"dnsmasq does not start: .*none"):
        Dnsmasq(file)


def test_the_interface_has_the_address() -> None:
    reported = '[{"ifname": "prov0", "addr_info": [{"family": "inet", "local": "192.0.2.1", "prefixlen": 24}]}]'
    assert found_in(reported, "prov0", "192.0.2.1") == NETWORK
    with pytest.raises(EnvironmentBrokenError, match=r"it has 192\.0\.2\.1/24, not 192\.0\.2\.9"):
        found_in(reported, "prov0", "192.0.2.9")
