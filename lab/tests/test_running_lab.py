"""Whole labs: up, what they show, faults that act at once, and nothing left behind. Needs root and ibsim."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.edges.site.load import load_site
from lab.tests.lab_kit import ROOT, RunningLab, clusterctl, eventually, leftovers, needs_lab, running_lab

pytestmark = [pytest.mark.lab, needs_lab]

BOOT_ID = ("cat", "/proc/sys/kernel/random/boot_id")
PROCESSORS = "/redfish/v1/Systems/System.Embedded.1/Processors"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """Three hosts that run."""
    with running_lab("tlab", "10.216.0.0/16", tmp_path_factory.mktemp("lab"), "--hosts", "3", "--installed") as lab:
        yield lab


def processors(lab: RunningLab, name: str) -> int:
    return len(lab.redfish(name, PROCESSORS)["Members"])


def first_leaves(lab: RunningLab, name: str) -> list[str]:
    """The leaf that each of a host's first two HCAs is plugged into; fewer while a cable is not seen."""
    found = [
        re.search(rf'^Ca.*"{name} mlx5_{i}"\n\[1\].*"MF0;(leaf-[^:]+):', lab.fabric(), re.MULTILINE) for i in (0, 1)
    ]
    return [match[1] for match in found if match]


def test_everything_answers_when_up_returns(installed: RunningLab) -> None:
    """BMCs, MAAS, packages, fabric and hosts, at once and without a retry; the site directory is valid."""
    site = load_site(installed.site)
    site.check_secrets()
    assert [node.name for node in site.nodes] == ["node001", "node002", "node003"]
    assert all(processors(installed, node.name) == 2 + 8 for node in site.nodes)
    assert installed.fabric().count('"node00') == 2 * 3 * 8
    assert installed.ssh("node002", "hostname") == "node002"
    assert installed.ssh("node003", "sudo", "apt-get", "-qq", "update", "&&", "echo", "well") == "well"
    row = installed.machine("node001")
    assert (row["power"], row["boot"], row["installed"], row["faults"]) == ("on", "running", True, [])


def test_missing_gpu_is_missing_everywhere_at_once(installed: RunningLab) -> None:
    """In the BMC and on the running host; `heal` brings it back in both."""
    facts = ("grep", "-c", "GPU-", "/etc/clusterctl-lab/machine.json")
    assert installed.ssh("node001", *facts) == "8"
    assert "missing-gpu:gpu5" in installed("inject", "missing-gpu", "node001:gpu5")
    assert processors(installed, "node001") == 2 + 7
    assert installed.ssh("node001", *facts) == "7"
    assert installed.machine("node001")["faults"] == ["missing-gpu:gpu5"]
    installed("heal", "node001")
    assert processors(installed, "node001") == 2 + 8
    assert installed.ssh("node001", *facts) == "8"


def test_swapped_cable_moves_in_the_running_fabric(installed: RunningLab) -> None:
    """The wiring plan stays the healthy one, the fabric changes, `heal` brings it back."""
    plan = (installed.site / "wiring.csv").read_text()
    assert first_leaves(installed, "node002") == ["leaf-p1-r1", "leaf-p1-r2"]
    installed("inject", "swapped-cable", "node002")
    assert eventually(lambda: first_leaves(installed, "node002") == ["leaf-p1-r2", "leaf-p1-r1"])
    installed("heal")
    assert eventually(lambda: first_leaves(installed, "node002") == ["leaf-p1-r1", "leaf-p1-r2"])
    assert (installed.site / "wiring.csv").read_text() == plan


def test_host_that_never_boots_hangs_in_post(installed: RunningLab) -> None:
    """From its next power-on; healed, it boots at the one after."""
    installed("inject", "never-boots", "node003")
    assert installed.machine("node003")["boot"] == "running"
    installed("power", "node003", "off")
    installed("power", "node003", "on")
    assert eventually(lambda: installed.machine("node003")["boot"] == "hangs in POST")
    installed("heal", "node003")
    installed("power", "node003", "off")
    installed("power", "node003", "on")
    assert eventually(lambda: installed.machine("node003")["boot"] == "running")


def test_reboot_from_within_is_a_reboot_of_the_machine(installed: RunningLab) -> None:
    """The host comes back through POST with another boot id."""
    before = installed.ssh("node001", *BOOT_ID)
    installed.ssh("node001", "sudo", "systemctl", "reboot")
    assert eventually(lambda: installed.ssh("node001", *BOOT_ID) not in ("", before))


def test_ansible_reboots_a_host(installed: RunningLab) -> None:
    """Its module `reboot` calls shutdown(8), which needs logind: logind starts for that call, and not at boot."""
    logind = ("pgrep", "-x", "systemd-logind")
    before = installed.ssh("node002", *BOOT_ID)
    assert installed.ssh("node002", *logind) == ""
    login = "-F none -o StrictHostKeyChecking=yes"
    argv = (
        *(
            str(Path(sys.executable).with_name("ansible")),
            "all",
            "-i",
            f"{installed.machine('node002')['address']},",
            "-u",
            "ops",
            "--become",
        ),
        *("--private-key", str(installed.site / "secrets/ssh_ed25519")),
        *("--ssh-common-args", f"{login} -o UserKnownHostsFile={installed.site / 'known_hosts'}"),
        *("-m", "ansible.builtin.reboot", "-a", "reboot_timeout=600"),
    )
    done = subprocess.run(argv, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert installed.ssh("node002", *BOOT_ID) not in ("", before)
    assert installed.ssh("node002", *logind) == ""


def test_a_second_lab_is_refused_or_runs_in_parallel(installed: RunningLab, tmp_path: Path) -> None:
    """Same name or same network: refused with words and without harm. Another name and network: both run."""
    same_name = clusterctl("lab", "up", "--name", "tlab", "--site", str(tmp_path / "x"))
    assert same_name.returncode == 2
    assert f"a lab named tlab is running, with the site directory {installed.site}" in same_name.stderr
    same_net = clusterctl("lab", "up", "--name", "tlab2", "--subnet", "10.216.0.0/16", "--site", str(tmp_path / "y"))
    assert same_net.returncode == 2
    assert "overlaps 10.216.0.0/16, which lab tlab uses" in same_net.stderr
    assert not leftovers(RunningLab("tlab2", tmp_path / "y"))
    with running_lab("tlab2", "10.217.0.0/16", tmp_path, "--hosts", "1") as second:
        assert second.machine("node001")["power"] == "off"
        assert installed.ssh("node001", "hostname") == "node001"
    assert not leftovers(second)
    assert installed.ssh("node001", "hostname") == "node001"


def test_a_lab_of_another_checkout_is_not_removed(installed: RunningLab, tmp_path: Path) -> None:
    """Refused with the site directory of the lab that runs; nothing of it ends."""
    refused = clusterctl("lab", "down", "--name", "tlab", "--site", str(tmp_path / "rehearsal"))
    assert refused.returncode == 2
    assert f"lab tlab belongs to {installed.site}" in refused.stderr
    assert installed.ssh("node001", "hostname") == "node001"


def test_down_leaves_nothing(tmp_path: Path) -> None:
    """No process, interface, mount, cgroup, file; the site directory goes too. A second `down` finds nothing."""
    with running_lab("tlab3", "10.218.0.0/16", tmp_path, "--hosts", "2", "--installed") as lab:
        assert leftovers(lab)
    assert not leftovers(lab)
    again = clusterctl("lab", "down", "--name", "tlab3")
    assert (again.returncode, again.stdout.strip()) == (0, "there is no lab tlab3")


def test_killed_lab_is_cleaned_by_the_next(tmp_path: Path) -> None:
    """After `kill -9` of the daemon nothing of it answers; `up` starts again and prints what it removed."""
    options = ("--hosts", "2", "--installed")
    with running_lab("tlab3", "10.218.0.0/16", tmp_path, *options) as lab:
        killed = lab.daemon
        os.kill(killed, signal.SIGKILL)
        assert eventually(lambda: clusterctl("lab", "status", "--name", "tlab3").returncode == 2)
        with running_lab("tlab3", "10.218.0.0/16", tmp_path, *options) as restarted:
            assert restarted.daemon != killed
            assert restarted.ssh("node002", "hostname") == "node002"
    assert not leftovers(lab)


def test_interrupted_up_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C while hosts boot. It arrives also where these tests run in the background of a shell, which ignores it."""
    lab = RunningLab("tlab3", tmp_path / "site")
    argv = ("lab", "up", "--name", "tlab3", "--subnet", "10.218.0.0/16", "--site", str(lab.site), "--installed")
    command = ["env", "--default-signal=INT", sys.executable, "-m", "clusterctl_cli.main", *argv]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("installing and booting"):
                process.send_signal(signal.SIGINT)
                break
        process.stderr.read()
    assert process.returncode == 130
    assert not leftovers(lab)


def test_a_lab_that_cannot_start_gives_the_reason_and_leaves_nothing(tmp_path: Path) -> None:
    """An impossible fault is refused before any machine exists."""
    lab = RunningLab("tlab3", tmp_path / "site")
    argv = ("--name", "tlab3", "--subnet", "10.218.0.0/16", "--site", str(lab.site), "--fault", "melted-gpu:node001")
    result = clusterctl("lab", "up", *argv)
    assert result.returncode == 2
    assert "there is no fault 'melted-gpu'" in result.stderr
    assert not leftovers(lab)
