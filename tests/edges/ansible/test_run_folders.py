"""Run folders: those of dead runs are swept by the next one, those of living ones never."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.edges.ansible.run_folders import discard, places, private_folder, sweep
from clusterctl.edges.ansible.workspace import PlayLimits, Workspace
from clusterctl.fleet.errors import EnvironmentBrokenError
from tests.edges.ansible.support import host

DIES = """
import os, signal, sys
from pathlib import Path
from clusterctl.edges.ansible.run_folders import private_folder
root, _ = private_folder(Path(sys.argv[1]))
(root / "extravars").write_text("a secret")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_run_left_is_swept_by_the_next(tmp_path: Path) -> None:
    """Its folder may hold secrets: it goes before anything else is done, whether or not a play follows."""
    subprocess.run([sys.executable, "-c", DIES, str(tmp_path)], check=False)
    assert len(list(tmp_path.iterdir())) == 1
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []

    subprocess.run([sys.executable, "-c", DIES, str(tmp_path)], check=False)
    root, _ = private_folder(tmp_path)
    assert list(tmp_path.iterdir()) == [root]


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path leaves room for the names of sockets, whatever pytest calls its own."""
    with tempfile.TemporaryDirectory(prefix="f") as name:
        yield Path(name)


def test_a_living_run_keeps_its_folder(short: Path) -> None:
    """Two runs at once do not sweep each other; also not one that was renamed at its end."""
    mine = Workspace.create(short)
    other = Workspace.create(short)
    mine.fill([host("n1")], {}, Path("/roles"), PlayLimits(forks=1))
    gone = other.root.rename(f"{other.root}.gone")
    sweep(short)
    assert {mine.root, gone} == set(short.iterdir())
    mine.remove()
    assert not mine.root.exists()


def test_files_and_links_next_to_run_folders_stay(tmp_path: Path) -> None:
    """Only folders are swept, and no link is followed."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "kept").mkdir(parents=True)
    work = tmp_path / "work"
    work.mkdir()
    (work / "readme").write_text("mine")
    (work / "rlink").symlink_to(elsewhere)
    sweep(work)
    assert {path.name for path in work.iterdir()} == {"readme", "rlink"}
    assert (elsewhere / "kept").exists()


def test_a_link_in_the_temporary_folder_is_refused(tmp_path: Path) -> None:
    """Our folder's name there is known: who made it before us, as a link, does not lead us elsewhere."""
    link = tmp_path / "clusterctl-0"
    link.symlink_to(tmp_path)
    with pytest.raises(EnvironmentBrokenError, match="does not belong to the user"):
        private_folder(link)
    assert places(tmp_path)[1].name == f"clusterctl-{os.geteuid()}"


def test_what_cannot_be_removed_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Only that: what another has removed meanwhile is gone as it should be."""
    caplog.set_level("WARNING", logger="clusterctl")
    link = tmp_path / "rlink"
    link.symlink_to(tmp_path)
    discard(tmp_path / "gone")
    assert not caplog.records
    discard(link)
    assert f"cannot remove {link}, which may hold secrets" in caplog.text
