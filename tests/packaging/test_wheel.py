"""The wheel is whole: it runs outside the checkout and carries the files that travel with the program."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = {
    "playbooks": "src/clusterctl/data/playbooks",
    "roles": "src/clusterctl/data/roles",
    "src/clusterctl/data/skus": "src/clusterctl/data/skus",
    "src/clusterctl/data/site": "src/clusterctl/data/site",
    "burnin/clusterctl_burnin/limits": "clusterctl/burnin/limits",
    "burnin/clusterctl_burnin/suites": "clusterctl/burnin/suites",
    "lab/clusterctl_lab/hosts": "lab/clusterctl_lab/hosts",
    "lab/clusterctl_lab/templates": "lab/clusterctl_lab/templates",
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
            [sys.executable, *argv], cwd=self.elsewhere, env=environment, capture_output=True, text=True, check=False
        )

    def clusterctl(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return self.run(str(self.folder / "bin" / "clusterctl"), *argv)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (built,) = folder.glob("clusterctl-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(folder)]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
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
    """The wheel has one package, `clusterctl`: no top-level `cli`, `burnin`, `tests`."""
    top = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} == {"clusterctl"}


def test_help_works_outside_the_checkout(installed: Installed) -> None:
    """The command of an installed wheel runs its own code and lists the commands."""
    where = installed.run("-c", "import clusterctl; print(clusterctl.__path__[0])")
    assert where.stdout.strip() == str(installed.folder / "clusterctl")
    answer = installed.clusterctl("--help")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "bootstrap" in answer.stdout


def test_every_command_loads(installed: Installed) -> None:
    """No command of an installed wheel lacks a module or a file that its help needs."""
    listing = installed.run("-c", "from clusterctl_cli.main import COMMANDS; print(*COMMANDS)")
    commands = listing.stdout.split()
    assert "lab" in commands
    failures = {c: answer.stderr for c in commands if (answer := installed.clusterctl(c, "--help")).returncode != 0}
    assert failures == {}


def test_init_writes_a_site_from_the_wheel(installed: Installed) -> None:
    """The site's templates are found in an installed wheel."""
    answer = installed.clusterctl("init", "site")
    assert answer.returncode == 0, answer.stderr
    assert (installed.elsewhere / "site" / "site.yml").is_file()
