"""Python and the libraries: what is installed against what clusterctl's own metadata requires."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import metadata

from packaging.requirements import Requirement

from clusterctl.fleet.diagnosis import Diagnosis, broken, enumerated, not_measured, ok

NAME = "python"
OLDEST = (3, 11)
REMEDY = "install clusterctl again with its dependencies: pip install --force-reinstall clusterctl"


def check() -> Diagnosis:
    try:
        required = metadata.requires("clusterctl") or []
    except metadata.PackageNotFoundError:
        return judge(sys.version_info[:2], None, {})
    wanted = [Requirement(line) for line in required]
    return judge(sys.version_info[:2], wanted, dict(_installed(wanted)))


def judge(python: tuple[int, int], wanted: list[Requirement] | None, installed: Mapping[str, str]) -> Diagnosis:
    """`installed`: version by name; `wanted` is None where clusterctl runs from a folder and no metadata tells."""
    version = f"Python {python[0]}.{python[1]}"
    if python < OLDEST:
        remedy = f"install Python {OLDEST[0]}.{OLDEST[1]} or newer"
        return broken(NAME, f"{version} is too old", remedy)
    if wanted is None:
        return not_measured(NAME, f"{version}; clusterctl is not installed as a package, so nothing says what it needs")
    wrong = [
        f"{need.name} {installed.get(need.name, 'is missing')} (needs {need.specifier})"
        for need in wanted
        if _applies(need) and not need.specifier.contains(installed.get(need.name, "0"), prereleases=True)
    ]
    if wrong:
        return broken(NAME, f"{version}; {enumerated(wrong)}", REMEDY)
    return ok(NAME, f"{version} and {len(wanted)} libraries as required")


def _applies(need: Requirement) -> bool:
    return need.marker is None or need.marker.evaluate({"extra": ""})


def _installed(wanted: list[Requirement]) -> Iterator[tuple[str, str]]:
    for need in wanted:
        try:
            yield need.name, metadata.version(need.name)
        except metadata.PackageNotFoundError:
            continue
