"""systemd-networkd itself reads what hosts are given, and what it makes of it passes the check.

In a network namespace with virtual ports; bonds and VLANs are read here and made only where the kernel can.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.network.findings import judge_network
from clusterctl.fleet.network.host_network import Addressing, HostNetwork, HostPort, ObservedNetwork
from clusterctl.formats.host.network import parse_default_routes, parse_ip_addr
from clusterctl.formats.host.networkd import FOLDER, files
from lab.tests.lab_kit import needs_lab
from tests.formats.host_networks import BONDED, BOOT, FIRST, RAILS, SECOND

NETWORKD = Path("/lib/systemd/systemd-networkd")
SCRIPT = Path(__file__).parent / "data" / "networkd_in_namespace.sh"
PLAIN = HostNetwork(
    ports=(
        HostPort(BOOT, "", Addressing(("10.20.0.17/16", "fd20::17/64"), gateway="10.20.255.254", mtu=1400)),
        HostPort(FIRST, "", Addressing(("10.30.0.17/24",))),
    )
)
MACS = (BOOT, FIRST, SECOND)
COMPLAINTS = ("unknown", "failed to parse", "invalid", "ignoring")

pytestmark = [
    pytest.mark.lab,
    needs_lab,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not NETWORKD.exists(), reason="systemd-networkd is not installed"),
]


def run(folder: Path, given: Mapping[str, str], wait_for: str) -> dict[str, str]:
    """Let networkd work until an interface has `wait_for`; return the output of `ip` and networkd then, by name."""
    for path, text in given.items():
        if path.startswith(FOLDER):
            (folder / Path(path).name).write_text(text)
    argv = ["unshare", "-n", "-m", "--propagation", "private", "bash", str(SCRIPT), str(folder), wait_for, *MACS]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(line) for line in ran.stdout.splitlines()) | {"log": ran.stderr}


def test_networkd_lays_what_the_check_then_finds(tmp_path: Path) -> None:
    """Addresses of both families, MTU and gateway; the host passes, and would not with another plan."""
    result = run(tmp_path, files(PLAIN, by="MACAddress"), "10.30.0.17/24")
    seen = ObservedNetwork(parse_ip_addr(result["addr"]), parse_default_routes(result["route"]))
    assert [finding.verdict for finding in judge_network(PLAIN, seen)] == [Verdict.PASS], result["log"]
    assert Verdict.FAIL in {finding.verdict for finding in judge_network(BONDED, seen)}


@pytest.mark.parametrize("network", [BONDED, RAILS], ids=["bonded", "rails"])
def test_networkd_understands_every_line(network: HostNetwork, tmp_path: Path) -> None:
    """No key and no section is unknown to it, whatever this kernel can make."""
    log = run(tmp_path, files(network, by="MACAddress"), "")["log"]
    assert "Enumeration completed" in log
    strange = [line for line in log.splitlines() if str(tmp_path) in line or "clusterctl" in line]
    assert not [line for line in strange if any(word in line.lower() for word in COMPLAINTS)]
