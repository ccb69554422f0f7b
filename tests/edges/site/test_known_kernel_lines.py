"""A site's own list of harmless kernel messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterctl.edges.site import contents
from clusterctl.edges.site.load import load_site
from clusterctl.fleet.errors import UsageError
from tests.cli import site_of_three


def test_a_site_without_one(tmp_path: Path) -> None:
    """Nothing is read, and nothing is missed."""
    assert contents.known_lines(load_site(site_of_three.write(tmp_path))).patterns == ()


def test_a_site_with_one(tmp_path: Path) -> None:
    """Read from the site directory; a mistake is reported with the site's other ones, before anything is touched."""
    folder = site_of_three.write(tmp_path)
    (folder / "kernel_log.yml").write_text("version: 1\nknown:\n- {pattern: '^frob', why: spare}\n")
    site = load_site(folder)
    assert contents.known_lines(site).patterns == ("^frob",)
    (folder / "kernel_log.yml").write_text("version: 1\nknown:\n- {pattern: '(', why: spare}\n")
    with pytest.raises(UsageError) as caught:
        contents.check_files(site)
    assert "kernel_log.yml:3 known.0.pattern" in caught.value.where
