"""The pinned requirements are complete, and do not show where they were pinned."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from clusterctl import __version__
from tests.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LAB = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())
DECLARED = {
    "requirements.txt": PROJECT["project"]["dependencies"],
    "requirements-dev.txt": PROJECT["dependency-groups"]["dev"],
}


def entries(name: str) -> list[str]:
    """Each package on one line: `NAME==VERSION --hash=sha256:… …`."""
    text = (ROOT / name).read_text().replace("\\\n", " ")
    return [" ".join(line.split()) for line in text.splitlines() if line and not line.startswith("#")]


def pins(name: str) -> dict[str, Version]:
    """Canonical package name → pinned version."""
    pairs = [line.split()[0].split("==") for line in entries(name)]
    return {canonicalize_name(package): Version(version) for package, version in pairs}


@pytest.mark.parametrize("name", DECLARED)
def test_declared_means_pinned(name: str) -> None:
    """Each declared dependency is pinned, to a version that the declaration allows."""
    pinned = pins(name)
    for line in DECLARED[name]:
        requirement = Requirement(line)
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), line


def test_pins_are_complete() -> None:
    """What the pinned packages themselves require is pinned too, so that a set-up is the same every time."""
    pinned = pins("requirements.txt")
    seen = 0
    for package in pinned:
        for line in metadata.distribution(package).requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                seen += 1
                assert canonicalize_name(requirement.name) in pinned, f"{package} requires {line}"
    assert seen > 20


def test_both_files_agree() -> None:
    """No package is pinned to two versions: both files are installed together."""
    run, dev = pins("requirements.txt"), pins("requirements-dev.txt")
    assert {name for name in run.keys() & dev.keys() if run[name] != dev[name]} == set()


@pytest.mark.parametrize("name", DECLARED)
def test_each_file_is_proven_and_no_place_is_named(name: str) -> None:
    """Name, version and SHA-256 digests, nothing else: no index, link, path or option. The files work behind any mirror,
    and no mirror can exchange a package (`pip install --require-hashes`, which pip does by itself for such files).
    """
    form = r"[a-z0-9-]+==([0-9]+!)?[a-z0-9.]+( --hash=sha256:[0-9a-f]{64})+"
    assert entries(name)
    assert [line for line in entries(name) if not re.fullmatch(form, line)] == []


def test_one_version() -> None:
    """The code, both packages and the lab's requirement name the same version."""
    assert PROJECT["project"]["version"] == LAB["project"]["version"] == __version__
    assert f"clusterctl=={__version__}" in LAB["project"]["dependencies"]
