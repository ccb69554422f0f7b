"""Labs of virtual metal for tests, and a network boot service of a few lines for machines that need no OS."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.preflight import check_machine
from lab.tests.lab_kit import RunningLab
from tests.processes import commands

PORT = 8080
IPXE = Path("/usr/lib/ipxe/snponly.efi")
"""Its `exit` leads back to the firmware; that of Debian 12's `ipxe.efi` hangs in OVMF."""
DNSMASQ = """\
port=0
interface={interface}
bind-interfaces
dhcp-range={network},static,255.255.0.0,1h
dhcp-host={mac},{address}
enable-tftp
tftp-root={root}
dhcp-match=set:ipxe,175
dhcp-boot=tag:!ipxe,snponly.efi
dhcp-boot=tag:ipxe,http://{gateway}:{port}/boot.ipxe?serial=${{serial}}&uuid=${{uuid}}
"""


def _missing() -> str:
    try:
        check_machine(virtual=True)
    except EnvironmentBrokenError as error:
        return error.message
    return ""


needs_metal = pytest.mark.skipif(bool(_missing()), reason=_missing() or "nothing is missing")


@dataclass
class Netboot:
    """Answers every iPXE that asks with the next of `scripts`; `asked` is what was asked for."""

    scripts: list[str]
    asked: list[str] = field(default_factory=list)


@contextmanager
def netboot(lab: RunningLab, folder: Path, scripts: list[str]) -> Iterator[Netboot]:
    """Serves the first machine of the lab until the block ends."""
    service = Netboot(scripts)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            service.asked.append(self.path)
            script = service.scripts.pop(0) if service.scripts else "exit"
            body = f"#!ipxe\n{script}\n".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """It is never read."""

    network = lab.machine("node001")["address"].rsplit(".", 2)[0]
    server = ThreadingHTTPServer((f"{network}.0.1", PORT), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    dnsmasq = _dnsmasq(lab, folder, network)
    try:
        yield service
    finally:
        dnsmasq.kill()
        dnsmasq.wait()
        server.shutdown()
        server.server_close()
        thread.join()


def _dnsmasq(lab: RunningLab, folder: Path, network: str) -> subprocess.Popen[bytes]:
    root = folder / "tftp"
    root.mkdir(mode=0o755)
    (root / IPXE.name).write_bytes(IPXE.read_bytes())
    file = folder / "dnsmasq.conf"
    text = DNSMASQ.format(
        interface=f"{lab.name}-mgmt",
        network=f"{network}.0.0",
        mac="02:1a:ee:00:00:01",
        address=f"{network}.128.1",
        root=root,
        gateway=f"{network}.0.1",
        port=PORT,
    )
    file.write_text(text)
    argv = ("dnsmasq", "--keep-in-foreground", "--leasefile-ro", "--pid-file=", f"--conf-file={file}", "--user=root")
    return subprocess.Popen(("setpriv", "--pdeathsig", "KILL", *argv))


SYSTEM = "/redfish/v1/Systems/System.Embedded.1"


def reset(lab: RunningLab, name: str, kind: str) -> int:
    """ComputerSystem.Reset at a machine's BMC; the HTTP status."""
    return _call(lab, name, "POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": kind})


def boot_once(lab: RunningLab, name: str, target: str) -> int:
    """The override for the next boot; the HTTP status."""
    boot = {"BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": "Once"}
    return _call(lab, name, "PATCH", SYSTEM, {"Boot": boot})


def power(lab: RunningLab, name: str) -> str:
    return str(lab.redfish(name, SYSTEM)["PowerState"])


def console(lab: RunningLab, name: str) -> str:
    """Return all output of the machine on its serial port since the lab began."""
    file = Path("/var/lib/clusterctl-lab", lab.name, "metal", name, "console.log")
    return file.read_text(errors="replace") if file.exists() else ""


def virtual_machines(lab: RunningLab) -> list[str]:
    """The command lines of the lab's QEMU processes."""
    ours = f"/clusterctl-lab/{lab.name}/"
    return [command for command in commands() if command.startswith("qemu-system-x86_64 ") and ours in command]


def _call(lab: RunningLab, name: str, method: str, path: str, body: dict[str, object]) -> int:
    secret = (lab.site / "secrets/bmc-password").read_text().strip()
    url = f"https://{lab.machine(name)['bmc']}{path}"
    answer = requests.request(
        method, url, json=body, auth=("root", secret), verify=str(lab.site / "lab-ca.pem"), timeout=120
    )
    return answer.status_code
