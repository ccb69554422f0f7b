"""Who else answers DHCP in our network: asked of a real dnsmasq, in a network of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from clusterctl.edges.pxe.addresses import announcing
from clusterctl.edges.pxe.checks import dhcp_servers, offers, router_advertisements
from clusterctl.edges.pxe.settings import Dhcp
from clusterctl.fleet.diagnosis import Health
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.formats.dhcp import DhcpOffer
from lab.tests.lab_kit import needs_lab
from tests.edges.pxe.test_dnsmasq import settings

NETWORK = Path(__file__).with_name("network.sh")
ASK = """
import json
from clusterctl.edges.pxe.checks import offers
before = offers("prov0", answer_s=0.5)
import os, subprocess, sys, time
machine = open(sys.argv[1]).read().strip()
other = ["nsenter", "--net", "--target", machine]
subprocess.run([*other, "ip", "address", "add", "192.0.2.5/24", "dev", "peer0"], check=True)
subprocess.run([*other, "ip", "link", "set", "peer0", "up"], check=True)
rogue = subprocess.Popen([*other, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--no-ping",
    "--dhcp-range=192.0.2.100,192.0.2.120,1h", "--dhcp-boot=theirs.efi", "--dhcp-leasefile=" + sys.argv[1] + ".leases",
    "--interface=peer0", "--bind-interfaces", "--user=root", "--pid-file=", "--dhcp-authoritative"])
try:
    until = time.monotonic() + 600
    while not (found := offers("prov0")) and time.monotonic() < until:
        time.sleep(0.2)
finally:
    rogue.kill()
leases = os.path.exists(sys.argv[1] + ".leases") and open(sys.argv[1] + ".leases").read()
print(json.dumps([len(before), [[str(o.server), str(o.address), o.file] for o in found], leases]))
"""


@needs_lab
@pytest.mark.lab
@pytest.mark.timeout(3600)
def test_an_unlisted_server_is_found(tmp_path: Path) -> None:
    """Silence before it serves; then its address, and the boot file that it offers. It gives no lease for that."""
    argv = [
        "unshare",
        "--net",
        "sh",
        str(NETWORK),
        str(tmp_path / "pid"),
        sys.executable,
        "-c",
        ASK,
        str(tmp_path / "pid"),
    ]
    run = subprocess.run(
        argv, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(Path.cwd())}
    )
    assert run.returncode == 0, run.stderr
    before, found, leases = json.loads(run.stdout.splitlines()[-1])
    assert before == 0
    ((server, address, file),) = found
    assert (server, file) == ("192.0.2.5", "theirs.efi")
    assert IPv4Address("192.0.2.100") <= IPv4Address(address) <= IPv4Address("192.0.2.120")
    assert not leases


def test_an_interface_that_is_not_there_is_unmeasured() -> None:
    """Reported with its name, never taken for silence."""
    with pytest.raises(EnvironmentBrokenError, match="prov9"):
        offers("prov9", answer_s=0.1)


OTHER = DhcpOffer(IPv4Address("192.0.2.5"), IPv4Address("192.0.2.100"), IPv4Address("192.0.2.5"), "theirs.efi")


@pytest.mark.parametrize(
    ("dhcp", "others", "health", "words"),
    [
        (Dhcp.RESERVE, (), Health.OK, "no other"),
        (Dhcp.RESERVE, (OTHER,), Health.WARN, "192.0.2.5 sends it the boot file theirs.efi"),
        (Dhcp.PROXY, (OTHER,), Health.OK, "192.0.2.5 assigns addresses"),
        (Dhcp.PROXY, (), Health.NOT_MEASURED, "no server offers"),
    ],
)
def test_what_is_made_of_it(dhcp: Dhcp, others: tuple[DhcpOffer, ...], health: Health, words: str) -> None:
    """Where we are the server, another one is a problem; in proxy mode, its absence is."""
    found = dhcp_servers(settings(dhcp), others)
    assert found.health is health
    assert words in found.found


def test_advertisements_need_an_ipv6_address_of_the_interfaces_own() -> None:
    """No advertisement is sent from a link-local address: iPXE then waits for one."""
    assert router_advertisements("prov0", "fd00:c1::1").health is Health.OK
    found = router_advertisements("prov0", announcing("lo"))
    assert (found.health, found.found) == (
        Health.WARN,
        "none is sent: prov0 has no IPv6 address but its link-local one",
    )
    assert found.remedy == "give it one, such as: ip address add fd00:c1::1/64 dev prov0"
