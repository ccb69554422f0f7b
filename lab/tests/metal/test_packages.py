"""Which packages an OS image has, read out of the packed image."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.emulators.apt.closure import installed
from clusterctl_lab.metal.packages import STATUS, package_status

DIGEST = "e8596f27ba64c3110a9c6dd8"
PACKAGES = """\
Package: bash
Status: install ok installed
Architecture: amd64
Version: 5.2.15-2+b7

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1
"""


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A root file system, packed as images are."""
    status = tmp_path / "root" / STATUS
    status.parent.mkdir(parents=True)
    status.write_text(PACKAGES)
    packed = tmp_path / "rootfs.tar.zst"
    tar = ("tar", "--create", "--directory", str(tmp_path / "root"), "--zstd", "--file", str(packed), ".")
    subprocess.run(tar, check=True)
    return packed


def test_what_is_installed_in_the_image(image: Path, tmp_path: Path) -> None:
    """By its own package status, read once for each image."""
    cache = tmp_path / "cache"
    found = package_status(image, DIGEST, cache=cache)
    assert installed(found) == {"bash"}
    image.unlink()
    assert package_status(image, DIGEST, cache=cache) == found
    assert [path.name for path in cache.iterdir()] == [found.name]


def test_an_image_that_is_none_leaves_nothing_behind(tmp_path: Path) -> None:
    """The tool's words, and no folder that the next lab would take for an answer."""
    broken = tmp_path / "rootfs.tar.zst"
    broken.write_bytes(b"not packed")
    with pytest.raises(EnvironmentBrokenError, match="tar failed"):
        package_status(broken, DIGEST, cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []
