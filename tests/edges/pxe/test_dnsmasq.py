"""dnsmasq: its configuration, that it understands it, and that it answers our machines alone."""

from __future__ import annotations

import ipaddress
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from clusterctl.edges.pxe import dnsmasq as dnsmasq_process
from clusterctl.edges.pxe.addresses import found_in
from clusterctl.edges.pxe.boot_certificate import BootCertificate
from clusterctl.edges.pxe.dnsmasq import HANG_S, Dnsmasq, DnsmasqFiles, configuration, reservation
from clusterctl.edges.pxe.settings import Dhcp, PxeSettings
from clusterctl.fleet.errors import EnvironmentBrokenError
from tests.edges.pxe.kit import MAC
from tests.ports import reserve_port

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


TLS = BootCertificate("a certificate", "a key", "an authority", "pin=")
CASES = {
    "reserve": settings(Dhcp.RESERVE, gateway="192.0.2.254", nameservers=("192.0.2.53", "192.0.2.54")),
    "reserve-announcing": settings(Dhcp.RESERVE, announce=True, loader="ipxe.efi"),
    "proxy": settings(Dhcp.PROXY, announce=True),
    "reserve-https": settings(Dhcp.RESERVE, gateway="192.0.2.254", tls=TLS),
    "proxy-https": settings(Dhcp.PROXY, tls=TLS),
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


@dataclass
class Seconds:
    """A clock that a test moves."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_one_that_hangs_is_noticed(tmp_path: Path) -> None:
    """Stopped by a signal, the real dnsmasq gives no sign of life; until then, and when it goes on, it does."""
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts" / "n1").write_text(reservation("n1", (MAC,), ""))
    file = tmp_path / "dnsmasq.conf"
    ports = f"{reserve_port()},{reserve_port()}"
    file.write_text(
        f"port=0\ninterface=lo\nbind-interfaces\nuser=root\nlog-facility=-\npid-file=\ndhcp-alternate-port={ports}\n"
        f"dhcp-range=127.0.0.0,static\ndhcp-hostsdir={tmp_path}/hosts\ndhcp-leasefile={tmp_path}/leases\n"
    )
    seconds = Seconds()
    dnsmasq = Dnsmasq(file, monotonic=seconds)

    def hangs_at_last() -> bool:
        """Its last lines from before it was stopped may still count as an answer."""
        for _ in range(4):
            seconds.now += HANG_S
            if dnsmasq.hangs():
                return True
        return False

    try:
        assert not dnsmasq.hangs()
        os.kill(dnsmasq.pid, signal.SIGSTOP)
        assert hangs_at_last()
        assert dnsmasq.ending == "dnsmasq hangs"
        os.kill(dnsmasq.pid, signal.SIGCONT)
        until = time.monotonic() + 600
        while dnsmasq.hangs():
            assert time.monotonic() < until, "it goes on, and still counts as hanging"
            time.sleep(0.05)
        assert dnsmasq.alive
        os.kill(dnsmasq.pid, signal.SIGSTOP)
    finally:
        dnsmasq.close()
    assert dnsmasq.ending == "dnsmasq was killed by signal 9 (Killed)"


def test_the_interface_has_the_address() -> None:
    reported = '[{"ifname": "prov0", "addr_info": [{"family": "inet", "local": "192.0.2.1", "prefixlen": 24}]}]'
    assert found_in(reported, "prov0", "192.0.2.1") == NETWORK
    with pytest.raises(EnvironmentBrokenError, match=r"it has 192\.0\.2\.1/24, not 192\.0\.2\.9"):
        found_in(reported, "prov0", "192.0.2.9")
