"""A backup that is encrypted by the site's keys: nothing of it can be read without them, and only the whole is restored."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.edges.journal import Holder, SqlJournal, backup, encrypted_backup, open_journal
from clusterctl.edges.journal.verification import verify
from clusterctl.edges.site.site_keys import SiteKeys
from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError
from clusterctl.fleet.node import NodeId
from tests.edges.journal.life import StepClock, added, fill
from tests.edges.journal.test_backup import content

FORMER, NEWER = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def keys(*texts: str) -> SiteKeys:
    return SiteKeys(len(texts), lambda: texts)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/journal.db"


@pytest.fixture
def book(place: str) -> Iterator[SqlJournal]:
    book = open_journal(place, StepClock(), Holder("r1"))
    fill(book)
    book.release(book.claim([NodeId("n2")], "r1").granted.values())
    yield book
    book.close()


def test_what_is_restored_is_what_was_backed_up(book: SqlJournal, place: str, tmp_path: Path) -> None:
    """No name of a node stands in the file, nor a page of SQLite; a new key comes first, and the former still reads it."""
    before, file = content(book), tmp_path / "backups" / "journal.backup"
    file.parent.mkdir()
    found = backup.back_up(place, file, keys(FORMER))
    written = file.read_bytes()
    assert found.damages == ()
    assert written.startswith(encrypted_backup.HEADER)
    assert b"SQLite" not in written
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    book.append([added("n9")])
    restored, _ = backup.restore(place, file, keys(NEWER, FORMER))
    assert restored.heads == found.heads
    assert content(book) == before
    assert verify(place).damages == ()


@pytest.mark.parametrize(
    ("known", "message"), [((), "the site names no key"), ((NEWER,), "cannot be decrypted by any key")]
)
def test_without_its_key_it_is_of_no_use(
    book: SqlJournal, place: str, tmp_path: Path, known: tuple[str, ...], message: str
) -> None:
    """The error names the file, and the journal stays as it is."""
    before, file = content(book), tmp_path / "journal.backup"
    backup.back_up(place, file, keys(FORMER))
    with pytest.raises(UsageError, match=message) as caught:
        backup.restore(place, file, keys(*known))
    assert caught.value.where == str(file)
    assert content(book) == before


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[bytes], bytes]:
    """A file, the lines of its backup, and a line of another backup of the same file."""
    folder = tmp_path_factory.mktemp("parts")
    plain = bytes(range(256)) * (encrypted_backup.PART_BYTES // 64)
    (folder / "plain").write_bytes(plain)
    for name in ("one", "two"):
        encrypted_backup.encrypt(folder / "plain", folder / name, keys(FORMER))
    lines = (folder / "one").read_bytes().splitlines(keepends=True)
    return plain, lines[1:], (folder / "two").read_bytes().splitlines(keepends=True)[2]


def decrypted(folder: Path, lines: list[bytes]) -> bytes:
    (folder / "file").write_bytes(encrypted_backup.HEADER + b"".join(lines))
    (folder / "plain").unlink(missing_ok=True)
    encrypted_backup.decrypt(folder / "file", folder / "plain", keys(FORMER))
    return (folder / "plain").read_bytes()


def test_many_parts_come_back_whole(tmp_path: Path, parts: tuple[bytes, list[bytes], bytes]) -> None:
    """Also an empty file."""
    plain, lines, _ = parts
    assert len(lines) == 4
    assert decrypted(tmp_path, lines) == plain
    (tmp_path / "empty").touch()
    encrypted_backup.encrypt(tmp_path / "empty", tmp_path / "empty.backup", keys(FORMER))
    encrypted_backup.decrypt(tmp_path / "empty.backup", tmp_path / "again", keys(FORMER))
    assert (tmp_path / "again").read_bytes() == b""


@settings(derandomize=True, deadline=None, max_examples=40)
@given(order=st.lists(st.integers(0, 4), max_size=6))
def test_parts_in_any_other_order_are_refused(
    tmp_path_factory: pytest.TempPathFactory, parts: tuple[bytes, list[bytes], bytes], order: list[int]
) -> None:
    """Lost, repeated, exchanged, or of another backup: 4 is one of another."""
    plain, lines, other = parts
    folder = tmp_path_factory.mktemp("order")
    chosen = [[*lines, other][number] for number in order]
    if order == [0, 1, 2, 3]:
        assert decrypted(folder, chosen) == plain
    else:
        with pytest.raises(EnvironmentBrokenError, match="the backup is damaged"):
            decrypted(folder, chosen)


def test_a_token_of_something_else(tmp_path: Path) -> None:
    """Another secret that the same key encrypted is no part of a backup."""
    token = Fernet(FORMER).encrypt(b"Kept-one-4711") + b"\n"
    with pytest.raises(EnvironmentBrokenError, match="the backup is damaged"):
        decrypted(tmp_path, [token])
