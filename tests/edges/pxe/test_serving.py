"""`clusterctl pxe serve` on a network of its own, with a machine that asks it: DHCP for ours alone, one server, an end
without leavings.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from clusterctl.edges.pxe.attempt_store import AttemptStore
from clusterctl.edges.pxe.service import PxeService
from clusterctl.edges.site import load_site
from clusterctl.operations.pxe import pxe_service, pxe_settings
from clusterctl.operations.site_facts import state_dir
from clusterctl_cli.main import run
from lab.tests.lab_kit import needs_lab
from tests.edges.pxe.kit import MAC
from tests.edges.pxe.test_installer import TARGET
from tests.edges.site.ready import write_ready_site
from tests.processes import descendants, gone, status_of

HERE = Path(__file__).parent
PXE = """provisioning:
  backend: pxe
  interface: prov0
  address: 192.0.2.1
  boot_folder: BOOT
  image: debian-12
  gateway: 192.0.2.254
"""
LONG_S = 600
CAPABILITIES = 1 << 10 | 1 << 12 | 1 << 13
"""CAP_NET_BIND_SERVICE, CAP_NET_ADMIN, CAP_NET_RAW (linux/capability.h)."""


def pxe_site(folder: Path) -> Path:
    site = write_ready_site(folder / "site")
    (folder / "boot" / "tftp").mkdir(parents=True)
    for name in ("snponly.efi", "undionly.kpxe"):
        (folder / "boot" / "tftp" / name).write_bytes(b"a loader")
    text = (site / "site.yml").read_text()
    message, found = re.subn(r"provisioning:\n(  .*\n)+", PXE.replace("BOOT", str(folder / "boot")), text)
    assert found == 1
    (site / "site.yml").write_text(message)
    return site


def service_of(site: Path) -> PxeService:
    """As a parallel run has it."""
    read = load_site(site)
    return pxe_service(read, pxe_settings(read), AttemptStore(state_dir(read) / "pxe" / "machines"))


def eventually(look: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + LONG_S
    while not look():
        assert time.monotonic() < until, what
        time.sleep(0.1)


@dataclass(frozen=True)
class Serving:
    site: Path
    process: subprocess.Popen[str]
    machine: int
    folder: Path

    def status(self) -> dict[str, int | str]:
        return dict(json.loads((self.site / "state" / "pxe" / "service.json").read_text()))

    def children(self) -> dict[int, dict[str, str]]:
        """The /proc status of each child that lives, its children too. A child has another for as long as it starts."""
        found = {child.pid: status_of(child.pid) for child in descendants(int(self.status()["pid"]))}
        return {pid: status for pid, status in found.items() if status}

    def without_privileges(self) -> None:
        """Dnsmasq and the HTTP service are processes of other users; neither reaches the site's state or secrets."""
        eventually(lambda: len(self.children()) == 2, "not two processes, of dnsmasq and of HTTP")
        dnsmasq, children = int(self.status()["dnsmasq"]), self.children()
        assert children[dnsmasq]["Name"] == "dnsmasq"
        for pid, status in children.items():
            assert "0" not in status["Uid"].split()
            assert {int(status[name], 16) for name in ("CapPrm", "CapEff")} == {CAPABILITIES if pid == dnsmasq else 0}
            assert status["NoNewPrivs"] == "1"
            user, group = status["Uid"].split()[1], status["Gid"].split()[1]
            for secret in ("secrets", "state", "state/pxe/machines"):
                argv = ["setpriv", "--reuid", user, "--regid", group, "--clear-groups", "ls", str(self.site / secret)]
                assert subprocess.run(argv, capture_output=True, check=False).returncode != 0, secret

    def machine_runs(self, *argv: str, check: bool = True) -> str:
        ran = subprocess.run(
            ["nsenter", "-t", str(self.machine), "-n", *argv],
            capture_output=True,
            text=True,
            check=False,
            timeout=LONG_S,
            cwd=self.folder,
        )
        assert ran.returncode == 0 or not check, ran.stderr
        return ran.stdout

    def asks(self, mac: str, times: int) -> str:
        """What a machine with this card gets by DHCP, as UEFI firmware asks; empty where no server answers."""
        self.machine_runs("ip", "link", "set", "peer0", "down")
        self.machine_runs("ip", "link", "set", "peer0", "address", mac)
        self.machine_runs("ip", "link", "set", "peer0", "up")
        argv = ["busybox", "udhcpc", "-i", "peer0", "-n", "-q", "-f", "-t", str(times), "-T", "1", "-O", "bootfile"]
        vendor = ["-V", "PXEClient:Arch:00007:UNDI:003016", "-x", "0x5d:0007"]
        return self.machine_runs(*argv, *vendor, "-s", str(HERE / "lease.sh"), check=False)


def cli(*argv: str) -> list[str]:
    return [sys.executable, "-m", "clusterctl_cli.main", *argv]


@contextmanager
def serving(folder: Path) -> Iterator[Serving]:
    site, pids = pxe_site(folder), folder / "pids"
    argv = ["unshare", "--net", "sh", str(HERE / "network.sh"), str(pids), *cli("pxe", "serve", "--site", str(site))]
    with (folder / "serve.log").open("w") as log:
        process = subprocess.Popen(argv, stderr=log, stdout=log, text=True, process_group=0)
    status = site / "state" / "pxe" / "service.json"
    try:
        eventually(
            lambda: (status.exists() and pids.exists()) or process.poll() is not None, "the service did not start"
        )
        assert process.poll() is None, (folder / "serve.log").read_text()
        yield Serving(site, process, int(pids.read_text()), folder)
    finally:
        with suppress(ProcessLookupError):  # none of the group is left
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(LONG_S)


@needs_lab
@pytest.mark.lab
@pytest.mark.timeout(3600)
def test_served_to_our_machines_alone(tmp_path: Path) -> None:
    """A machine that a run made known gets its address and the loader, a stranger gets nothing; the HTTP service answers
    it; a second server is refused; SIGTERM ends all of it.
    """
    with serving(tmp_path) as served:
        assert served.asks(MAC, 2) == ""
        second = service_of(served.site)
        second.ensure()  # a run finds that it is served already
        second.answer(TARGET)
        eventually(lambda: "ip=192.0.2.17" in served.asks(MAC, 3), "no answer to a machine of ours")
        assert "file=snponly.efi" in served.asks(MAC, 10)
        served.without_privileges()
        assert served.asks("02:00:00:00:00:99", 2) == ""
        second.answer(replace(TARGET, address="192.0.2.18"))
        eventually(lambda: "ip=192.0.2.18" in served.asks(MAC, 3), "the new address is not offered")
        fetch = "import urllib.request as u; print(u.urlopen('http://192.0.2.1:8080/boot.ipxe', timeout=600).read().decode())"
        served.machine_runs("ip", "address", "add", "192.0.2.18/24", "dev", "peer0")
        assert served.machine_runs(sys.executable, "-c", fetch).startswith("#!ipxe\n")
        served.machine_runs("busybox", "tftp", "-g", "-r", "snponly.efi", "-l", "loader", "192.0.2.1")
        assert (tmp_path / "loader").read_bytes() == b"a loader"
        assert run(["pxe", "serve", "--site", str(served.site)]) == 3
        http, dnsmasq = int(served.status()["pid"]), int(served.status()["dnsmasq"])
        os.kill(http, signal.SIGTERM)
        assert served.process.wait(LONG_S) == 0, (tmp_path / "serve.log").read_text()
        eventually(lambda: gone(dnsmasq), "dnsmasq outlives the service")
        assert second.holder is None


@needs_lab
@pytest.mark.lab
@pytest.mark.timeout(3600)
def test_killed_it_leaves_nothing(tmp_path: Path) -> None:
    """SIGKILL: dnsmasq dies with it, and the next one serves at once."""
    with serving(tmp_path) as served:
        http, dnsmasq = int(served.status()["pid"]), int(served.status()["dnsmasq"])
        os.kill(http, signal.SIGKILL)
        eventually(lambda: gone(dnsmasq), "dnsmasq outlives the service")
        eventually(lambda: service_of(served.site).holder is None, "a dead process is reported to serve")


@needs_lab
@pytest.mark.lab
@pytest.mark.timeout(3600)
def test_a_lost_dnsmasq_is_started_again(tmp_path: Path) -> None:
    """SIGKILL to it: another one answers the same machines; the serving process goes on."""
    with serving(tmp_path) as served:
        second = service_of(served.site)
        second.answer(TARGET)
        lost = int(served.status()["dnsmasq"])
        os.kill(lost, signal.SIGKILL)
        eventually(lambda: int(served.status()["dnsmasq"]) != lost, "dnsmasq is not started again")
        eventually(lambda: "ip=192.0.2.17" in served.asks(MAC, 3), "no answer to a machine of ours")
        assert served.process.poll() is None


def test_check_reports_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each thing by itself, with what to do; exit code 3 where the controller lacks it. Nothing is changed."""
    site = pxe_site(tmp_path)
    assert run(["pxe", "check", "--json", "--site", str(site)]) == 3
    found = {item["name"]: item for item in json.loads(capsys.readouterr().out)["checks"]}
    assert found["tools"]["verdict"] == "ok"
    assert found["interface"]["verdict"] == "broken"
    assert "prov0" in found["interface"]["found"]
    assert found["install"]["verdict"] == "broken"
    assert "clusterctl image build" in found["install"]["remedy"]
    assert found["loaders"]["verdict"] == "ok"
    assert found["addresses"]["verdict"] == "broken"
    assert found["other_dhcp"]["verdict"] == "not_measured"
    assert found["service_accounts"]["verdict"] in ("ok", "warn")
    assert "dnsmasq" in found["service_accounts"]["found"]
    assert not (site / "state" / "pxe" / "service.lock").exists()


def test_a_site_without_pxe_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = write_ready_site(tmp_path / "site")
    for command in ("serve", "check"):
        assert run(["pxe", command, "--site", str(site)]) == 2
        assert "add backend: pxe" in capsys.readouterr().err
