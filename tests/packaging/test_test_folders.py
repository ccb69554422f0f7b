"""`make test` and CI run pytest without naming a folder: the one configuration finds the tests of all packages."""

from __future__ import annotations

import tomllib

from tests.paths import ROOT

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
IGNORED = {".venv", "build", "dist"}


def test_every_test_is_below_a_folder_of_the_configuration() -> None:
    """The product's and the lab's, and no third place."""
    assert SETTINGS["testpaths"] == ["tests", "lab/tests"]
    folders = [ROOT / folder for folder in SETTINGS["testpaths"]]
    found = [
        path for top in ROOT.iterdir() if top.is_dir() and top.name not in IGNORED for path in top.rglob("test_*.py")
    ]
    assert found
    assert [path for path in found if not any(path.is_relative_to(folder) for folder in folders)] == []


def test_the_lab_is_tested_where_the_lab_is() -> None:
    """Each folder of its tests is a folder of the package, by the same name."""
    tests, package = ROOT / "lab/tests", ROOT / "lab/clusterctl_lab"
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    assert [folder for folder in folders if not (package / folder).is_dir()] == []
