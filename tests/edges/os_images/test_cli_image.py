"""`clusterctl image`: the messages before anything is built, and the list of images."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clusterctl.edges.os_images import BootFolder
from clusterctl.fleet.errors import UsageError
from clusterctl_cli.main import cli
from tests.edges.os_images.test_store import manifest, put


def run(*argv: str) -> Result:
    return CliRunner().invoke(cli, ["image", *argv], standalone_mode=False, catch_exceptions=False)


def test_a_list_has_the_image_of_each_name(tmp_path: Path) -> None:
    """In words and as JSON, with the path under which it is served."""
    put(BootFolder(tmp_path), manifest())
    result = run("list", "--boot-folder", str(tmp_path)).stdout
    assert "debian-12  debian 12, kernel 6.1.0, 9 packages" in result
    document = json.loads(run("list", "--boot-folder", str(tmp_path), "--json").stdout)
    assert document["deployer"] is None
    (image,) = document["images"]
    assert (image["name"], image["path"]) == ("debian-12", f"images/debian-12/{'ab' * 32}/rootfs.tar.zst")


def test_an_empty_folder_is_reported_with_the_command(tmp_path: Path) -> None:
    """No image is no error: the message explains how to begin."""
    result = run("list", "--boot-folder", str(tmp_path / "nowhere"))
    assert result.exit_code == 0
    assert "clusterctl image build" in result.stdout
    assert not (tmp_path / "nowhere").exists()


def test_a_dry_run_prints_what_would_be_built_and_changes_nothing(tmp_path: Path) -> None:
    """Name, release, source and place."""
    folder = tmp_path / "boot"
    mirror = ("--suite", "noble", "--mirror", "http://me:pw-7@192.0.2.1/ubuntu")
    result = run("build", *mirror, "--boot-folder", str(folder), "--dry-run")
    assert "image ubuntu-24.04: ubuntu 24.04 from the mirror that was named" in result.stderr
    assert "pw-7" not in result.stderr + result.stdout
    assert not folder.exists()


def test_a_suite_without_a_recipe_is_wrong_usage(tmp_path: Path) -> None:
    """The existing ones are listed as well."""
    with pytest.raises(UsageError) as caught:
        run("build", "--suite", "sid", "--boot-folder", str(tmp_path), "--dry-run")
    assert "bookworm" in caught.value.remedy


def test_what_no_name_stands_for_is_removed_and_nothing_else(tmp_path: Path) -> None:
    """After a yes; a dry run only names it."""
    store = BootFolder(tmp_path)
    put(store, manifest())
    put(store, manifest(digest="cd" * 32))
    old, new = (tmp_path / "images/debian-12" / digest for digest in ("ab" * 32, "cd" * 32))
    assert "ab" * 32 in run("prune", "--boot-folder", str(tmp_path), "--dry-run").stdout
    assert old.exists()
    with pytest.raises(UsageError, match="no terminal"):
        run("prune", "--boot-folder", str(tmp_path))
    assert old.exists()
    run("prune", "--boot-folder", str(tmp_path), "--yes")
    assert (old.exists(), new.exists()) == (False, True)
    assert store.image("debian-12").digest == "cd" * 32
    assert "nothing old" in run("prune", "--boot-folder", str(tmp_path), "--yes").stdout
