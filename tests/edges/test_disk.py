"""The controller's disk: files whole or not at all, and errors in words."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clusterctl.edges.disk import (
    OccupiedError,
    disk_explained,
    lock,
    named_path_explained,
    require_room,
    write_whole,
)
from clusterctl.edges.hostkeys import HostKeys
from clusterctl.edges.pool import FilePool
from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError
from tests.steps.fakes import FixedClock

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
BALLAST = 1 << 16


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own without a free byte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={BALLAST}", "tmpfs", folder], check=True)
    (folder / "ballast").write_bytes(bytes(BALLAST))
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_file_is_replaced_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    """New content under the old name, with the mode asked for; a dead writer's part is taken over."""
    file = tmp_path / "pool.json"
    (tmp_path / ".pool.json.part").write_bytes(b"what a killed writer had written, and longer than ours")
    write_whole(file, b"old", mode=0o600, over=True)
    write_whole(file, b"new", mode=0o600, over=True)
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"new", 0o600)
    assert list(tmp_path.iterdir()) == [file]


def test_what_is_there_is_kept_where_it_must_be(tmp_path: Path) -> None:
    """Of many writers at once the first one counts, and every one of them sees its content."""
    file = tmp_path / "key"

    def write(number: int) -> bytes:
        write_whole(file, b"%d" % number, mode=0o600, over=False)
        return file.read_bytes()

    with ThreadPoolExecutor(16) as pool:
        seen = set(pool.map(write, range(64)))
    assert len(seen) == 1
    assert list(tmp_path.iterdir()) == [file]


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[Path]:
    """A file whose writer was stopped in the middle: it holds the lock of its part."""
    part = tmp_path / ".key.part"
    with part.open("wb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        writer.write(b"half of")
        writer.flush()
        yield tmp_path / "key"


def test_a_file_that_is_written_once_waits_for_no_stopped_writer(stopped: Path) -> None:
    """The other's part stays its own; when it wakes, it finds the file and leaves it alone."""
    write_whole(stopped, b"whole", mode=0o600, over=False)
    assert stopped.read_bytes() == b"whole"
    assert sorted(path.name for path in stopped.parent.iterdir()) == [".key.part", "key"]
    assert (stopped.parent / ".key.part").read_bytes() == b"half of"


def test_a_replacement_gives_up_where_a_writer_was_stopped(stopped: Path) -> None:
    """It cannot know what that one writes when it wakes: the old file stays, and the remedy is to find the process."""
    stopped.write_bytes(b"old")
    with pytest.raises(EnvironmentBrokenError, match="held its lock") as error, disk_explained("not written", stopped):
        write_whole(stopped, b"new", mode=0o600, over=True, wait_s=0.1)
    assert "state T" in error.value.remedy
    assert stopped.read_bytes() == b"old"


def test_a_lock_is_waited_for_until_its_time(stopped: Path) -> None:
    with stopped.with_name(".key.part").open("rb") as other, pytest.raises(OccupiedError):
        lock(other.fileno(), 0.1)


@pytest.mark.parametrize("over", [True, False])
def test_a_writer_that_was_killed_with_its_file_in_place_blocks_no_other(tmp_path: Path, over: bool) -> None:
    """The file has two names then, and is not overwritten through the second one."""
    file, part = tmp_path / "key", tmp_path / ".key.part"
    file.write_bytes(b"whole")
    part.hardlink_to(file)
    write_whole(file, b"new", mode=0o600, over=over)
    assert file.read_bytes() == (b"new" if over else b"whole")
    file.unlink()
    write_whole(file, b"newest", mode=0o600, over=False)
    assert file.read_bytes() == b"newest"


def test_errors_have_what_and_where_and_what_to_do(tmp_path: Path) -> None:
    """A full disk asks for room, anything else for permission."""
    with (
        pytest.raises(EnvironmentBrokenError, match="cannot be kept: No space left") as full,
        disk_explained("cannot be kept", tmp_path),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert "make room" in full.value.remedy
    with pytest.raises(EnvironmentBrokenError) as denied, disk_explained("cannot be kept", tmp_path):
        raise PermissionError(errno.EACCES, "Permission denied")
    assert "writable" in denied.value.remedy


@pytest.mark.parametrize("below", ["missing/file", "file/below", "n" * 300])
def test_a_path_that_cannot_exist_is_wrong_usage(tmp_path: Path, below: str) -> None:
    """The operator named it: another path helps, and no right or space."""
    (tmp_path / "file").write_text("")
    path = tmp_path / below
    with (
        pytest.raises(UsageError, match="cannot be written: ") as caught,
        named_path_explained("cannot be written", path),
    ):
        path.write_text("")
    assert (caught.value.where, caught.value.exit_code) == (str(path), 2)
    assert "name another path" in caught.value.remedy


def test_a_named_path_without_a_right_is_no_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentBrokenError, match="denied"), named_path_explained("cannot be written", tmp_path):
        raise PermissionError(errno.EACCES, "Permission denied")


@needs_root
def test_a_full_disk_is_reported_and_leaves_nothing_half_written(full_disk: Path) -> None:
    """Neither a host key nor the pool is there afterwards, nor a part of them that could be taken for one."""
    with pytest.raises(EnvironmentBrokenError, match="No space left"):
        require_room(full_disk)
    with pytest.raises(EnvironmentBrokenError, match="cannot be written: No space left"):
        HostKeys(full_disk).get("n1")
    with pytest.raises(EnvironmentBrokenError, match="gold pool cannot be published: No space left"):
        FilePool(full_disk / "gold.json", "site", simulated=True, clock=FixedClock()).publish({"n1": "192.0.2.1"})
    (full_disk / "ballast").unlink()
    private, public = HostKeys(full_disk).get("n1")
    assert "PRIVATE" in private
    assert public.startswith("ssh-ed25519 ")
    assert [path.name for path in full_disk.iterdir()] == ["n1"]


@pytest.mark.parametrize("trap", ["symlink", "hard link"])
def test_no_other_file_is_written_through_a_link(tmp_path: Path, trap: str) -> None:
    """The part's name is predictable: a link there, to a file of root or of another account, is refused."""
    victim, part = tmp_path / "victim", tmp_path / ".key.part"
    victim.write_bytes(b"of another")
    (part.symlink_to if trap == "symlink" else part.hardlink_to)(victim)
    with pytest.raises(EnvironmentBrokenError), disk_explained("cannot be written", tmp_path / "key"):
        write_whole(tmp_path / "key", b"a secret", mode=0o600, over=True)
    assert victim.read_bytes() == b"of another"
    assert not (tmp_path / "key").exists()


@needs_root
def test_no_secret_is_written_into_a_file_of_another_account(tmp_path: Path) -> None:
    part = tmp_path / ".key.part"
    part.touch()
    os.chown(part, 4711, 4711)
    with pytest.raises(EnvironmentBrokenError, match="another account"), disk_explained("x", tmp_path / "key"):
        write_whole(tmp_path / "key", b"a secret", mode=0o600, over=True)
    assert part.read_bytes() == b""


def test_a_host_key_is_private_or_refused(tmp_path: Path) -> None:
    """One that others may read is known to them, and proves no host."""
    keys = HostKeys(tmp_path / "keys")
    private, _ = keys.get("n1")
    assert private.endswith("-----END OPENSSH PRIVATE KEY-----\n")
    (tmp_path / "keys" / "n1").chmod(0o644)
    with pytest.raises(UsageError, match="others may read it"):
        keys.get("n1")
