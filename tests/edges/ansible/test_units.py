"""Each unit of systemd that the roles write is read by systemd itself: nothing in it is unknown, missing or ignored."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.edges.ansible.role_cases import CASES

ANALYZE = shutil.which("systemd-analyze")
OWN = Path("/lib/systemd/system")
pytestmark = pytest.mark.skipif(ANALYZE is None or not OWN.is_dir(), reason="systemd is not installed")
INSTALLED = {
    "clusterctl-worker.service": "clusterctl-worker-pod3.service",
    "opensm.service": "clusterctl-opensm@.service",
    "pcie-acs-off.service": "clusterctl-pcie-acs-off.service",
    "scrub.service": "zfs_pool-scrub.service",
    "scrub.timer": "zfs_pool-scrub.timer",
}
"""Names of templates that a role installs as units of another name."""
FOLDERS = sorted({file.parent for kind in ("service", "timer") for file in CASES.glob(f"*/*/golden/*.{kind}.j2")})
LOOSEST = {
    "clusterctl-web.service": 7.4,
    "clusterctl-notify.service": 5.6,
    "clusterctl-tickets.service": 5.6,
}
"""What answers on the network or posts to it by itself → the highest exposure that systemd may find, of 10."""
_EXEC = re.compile(r'^Exec\w+=[-@:+!]*"?(/[^\s"]+)', re.MULTILINE)


def unit_name(file: Path) -> str:
    name = file.name.removesuffix(".j2")
    return INSTALLED.get(name, name)


def with_units(root: Path, golden: Path) -> list[str]:
    """Make a root folder with systemd's own units, those of a role, and a program wherever one is started; return the
    names of the role's units.
    """
    units = root / "etc/systemd/system"
    units.mkdir(parents=True)
    shutil.copytree(OWN, root / "lib/systemd/system", symlinks=True)
    files = sorted([*golden.glob("*.service.j2"), *golden.glob("*.timer.j2")])
    for file in files:
        (units / unit_name(file)).write_text(file.read_text())
        for program in _EXEC.findall(file.read_text()):
            place = root / program.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("#!/bin/sh\n")
            place.chmod(0o755)
    for unit in (root / "lib/systemd/system").glob("*.service"):
        for program in _EXEC.findall(unit.read_text()) if unit.is_file() else ():
            place = root / program.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                place.write_text("#!/bin/sh\n")
                place.chmod(0o755)
    return [unit_name(file) for file in files]


def analyzed(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(ANALYZE), *argv], capture_output=True, text=True, timeout=120, check=False)


def complaints(root: Path, names: list[str]) -> list[str]:
    """What systemd reports about these units; its own ones may name what is not installed here."""
    found = analyzed("verify", f"--root={root}", "--man=no", *names)
    own = tuple(name.rpartition(".")[0].rstrip("@") for name in names)
    lines = [line for line in found.stderr.splitlines() if any(name in line for name in own)]
    return lines or ([] if found.returncode == 0 else found.stderr.splitlines())


@pytest.mark.parametrize("golden", FOLDERS, ids=lambda one: f"{one.parts[-3]}/{one.parts[-2]}")
def test_systemd_accepts_each_unit(golden: Path, tmp_path: Path) -> None:
    """Each key is known in its section, each value can be read, each program and each unit that it names is there."""
    names = with_units(tmp_path, golden)
    assert names
    assert complaints(tmp_path, names) == []


@pytest.mark.parametrize(
    "line", ["ProtectSystm=full", "RestartSec=soon", "ExecStartPre=/opt/none", "KillMode=sometimes"]
)
def test_a_wrong_line_is_found(line: str, tmp_path: Path) -> None:
    """A key of no section, values that cannot be read, a program that is not there."""
    golden = CASES / "clusterctl_controller/default/golden"
    with_units(tmp_path, golden)
    unit = tmp_path / "etc/systemd/system/clusterctl-web.service"
    unit.write_text(unit.read_text().replace("[Service]\n", f"[Service]\n{line}\n"))
    assert complaints(tmp_path, ["clusterctl-web.service"])


@pytest.mark.parametrize("name", LOOSEST)
def test_what_meets_the_network_stays_confined(name: str, tmp_path: Path) -> None:
    """Its exposure, as `systemd-analyze security` counts it, is no higher than it was."""
    with_units(tmp_path, CASES / "clusterctl_controller/default/golden")
    found = analyzed("security", "--offline=true", f"--root={tmp_path}", "--no-pager", name)
    level = re.search(r"exposure level for \S+: ([0-9.]+)", found.stdout)
    assert level is not None, found.stderr
    assert float(level[1]) <= LOOSEST[name]
