"""The wheel is whole: it runs outside the checkout and carries the files that travel with the program."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.paths import ROOT

DATA = {
    "playbooks": "clusterctl/ansible/playbooks",
    "roles": "clusterctl/ansible/roles",
    "src/clusterctl/data/skus": "clusterctl/data/skus",
    "src/clusterctl/data/site": "clusterctl/data/site",
    "burnin/clusterctl_burnin/limits": "clusterctl_burnin/limits",
    "burnin/clusterctl_burnin/suites": "clusterctl_burnin/suites",
    "web/clusterctl_web/static": "clusterctl_web/static",
    "web/clusterctl_web/templates": "clusterctl_web/templates",
}
"""Folder of the checkout → folder of the wheel."""


@dataclass(frozen=True)
class Installed:
    """A wheel installed into a folder of its own, and a place to run it that is no checkout."""

    folder: Path
    elsewhere: Path

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [sys.executable, "-S", *argv],
            cwd=self.elsewhere,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def clusterctl(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return self.run(str(self.folder / "bin" / "clusterctl"), *argv)


def build(source: Path, folder: Path) -> Path:
    """The wheel of `source`, the checkout or its `lab`."""
    argv = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run(argv, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def install(folder: Path, *wheels: Path) -> None:
    """The wheels, and with them what they need: all of this interpreter's packages but the checkout's own."""
    folder.mkdir(exist_ok=True)
    for found in Path(sysconfig.get_path("purelib")).iterdir():
        if "clusterctl" not in found.name and found.name != "bin" and found.suffix != ".pth":
            (folder / found.name).symlink_to(found)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(folder)]
    subprocess.run([*pip, *map(str, wheels)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def lab_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT / "lab", tmp_path_factory.mktemp("lab-dist"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    install(folder, wheel)
    return Installed(folder, tmp_path_factory.mktemp("elsewhere"))


@pytest.mark.parametrize("folder", DATA)
def test_data_travels_with_the_program(wheel: Path, folder: str) -> None:
    """Every file of these folders in the checkout is in the wheel, and there are some."""
    expected = {
        f"{DATA[folder]}/{path.relative_to(ROOT / folder)}"
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert expected
    assert expected - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_nothing_takes_a_generic_name(wheel: Path) -> None:
    """The wheel's packages carry the product's name: no top-level `cli`, `burnin`, `tests`; and no emulator is in it."""
    top = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    packages = {"clusterctl", "clusterctl_burnin", "clusterctl_cli", "clusterctl_web"}
    assert {name for name in top if not name.endswith(".dist-info")} == packages


def test_the_lab_is_a_wheel_of_its_own(wheel: Path, lab_wheel: Path, tmp_path: Path) -> None:
    """`clusterctl lab` prints how to install the lab where it is missing, and works where its wheel is installed, too."""
    install(tmp_path / "product", wheel)
    missing = Installed(tmp_path / "product", tmp_path).clusterctl("lab", "faults")
    assert (missing.returncode, "clusterctl-lab" in missing.stderr) == (2, True), missing.stderr
    install(tmp_path / "both", wheel, lab_wheel)
    there = Installed(tmp_path / "both", tmp_path).clusterctl("lab", "faults")
    assert (there.returncode, "missing-gpu" in there.stdout) == (0, True)


def test_help_works_outside_the_checkout(installed: Installed) -> None:
    """The command of an installed wheel runs its own code and lists the commands."""
    where = installed.run("-c", "import clusterctl; print(clusterctl.__path__[0])")
    assert where.stdout.strip() == str(installed.folder / "clusterctl")
    answer = installed.clusterctl("--help")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "bootstrap" in answer.stdout


def test_every_command_loads(installed: Installed) -> None:
    """No command of an installed wheel lacks a module or a file that its help needs."""
    listing = installed.run("-c", "from clusterctl_cli.command_groups import COMMANDS; print(*COMMANDS)")
    commands = listing.stdout.split()
    assert "bootstrap" in commands
    failures = {c: answer.stderr for c in commands if (answer := installed.clusterctl(c, "--help")).returncode != 0}
    assert failures == {}


def test_init_writes_a_site_from_the_wheel(installed: Installed) -> None:
    """The site's templates are found in an installed wheel."""
    answer = installed.clusterctl("init", "site")
    assert answer.returncode == 0, answer.stderr
    assert (installed.elsewhere / "site" / "site.yml").is_file()
