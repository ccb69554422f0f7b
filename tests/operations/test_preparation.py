"""`init`: the site is called as its folder is."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from clusterctl.operations.preparation import init


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("dc1-pod2", "dc1-pod2"),
        ("My Site", "my-site"),
        ("Zürich", "zurich"),
        ("u\u0308mlaut stra\u00dfe", "umlaut-strasse"),
        ("\u96c6\u7fa4", "site"),
        ("2026", "2026"),
        ("yes", "yes"),
        ("--", "site"),
        ("x" * 80, "x" * 63),
    ],
)
def test_the_site_is_called_as_its_folder(folder: str, name: str, tmp_path: Path) -> None:
    """In the characters that a name may have; a name that YAML would read as a number or a yes/no is text."""
    init(tmp_path / folder)

    assert yaml.safe_load((tmp_path / folder / "site.yml").read_text())["name"] == name
