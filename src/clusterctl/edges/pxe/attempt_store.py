"""The records of machines and their install attempts: one file per machine, complete at any moment.

A run and `clusterctl pxe serve` may use the same folder. Each change is made under one lock (flock(2)), to the
record as it is at that moment.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock

from pydantic import TypeAdapter, ValidationError

from clusterctl.edges.disk import disk_explained, lock, write_whole
from clusterctl.edges.pxe.attempt import InstallAttempt, plain
from clusterctl.edges.redaction import KNOWN
from clusterctl.fleet.errors import ConflictError, EnvironmentBrokenError
from clusterctl.fleet.node import Mac

TOKEN_BYTES = 32
LOG = "log"
NOTE = "note"
_RECORD = TypeAdapter(InstallAttempt)
_Stamp = tuple[int, int, int]


class AttemptStore:
    """The records of one site. Thread-safe; other processes see each change when they read next."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, tuple[_Stamp, InstallAttempt]] = {}
        self._nodes_by_mark: dict[str, str] = {}
        self._guard = Lock()

    def find(self, node: str) -> InstallAttempt | None:
        return self._load(self._folder / f"{node}.json")

    def all(self) -> Mapping[str, InstallAttempt]:
        """Return all records by node. Files that have not changed are not read again."""
        with disk_explained("cannot be read", self._folder):
            files = sorted(self._folder.glob("*.json"))
        found = (self._load(file) for file in files)
        return {attempt.node: attempt for attempt in found if attempt is not None}

    def by_mac(self, mac: Mac) -> InstallAttempt | None:
        """Return the record that names this card; a running attempt goes before other records."""
        if (known := self._known(mac)) is not None and known.running and mac in known.macs:
            return known
        having = [attempt for attempt in self.all().values() if mac in attempt.macs]
        return self._remembered(mac, next((attempt for attempt in having if attempt.running), next(iter(having), None)))

    def by_token(self, token: str) -> InstallAttempt | None:
        """Return the attempt with this token, also an ended one: the caller decides what its token still permits."""
        return self._matching(token, lambda attempt: attempt.token)

    def by_ticket(self, ticket: str) -> InstallAttempt | None:
        """Return the attempt with this ticket, also an ended one."""
        return self._matching(ticket, lambda attempt: start_ticket(attempt.token) if attempt.token else "")

    def _matching(self, value: str, of: Callable[[InstallAttempt], str]) -> InstallAttempt | None:
        mark = hashlib.sha256(value.encode()).hexdigest()
        if (known := self._known(mark)) is not None and _same(of(known), value):
            return known
        return self._remembered(mark, next((found for found in self.all().values() if _same(of(found), value)), None))

    def put(self, attempt: InstallAttempt, documents: Mapping[str, bytes]) -> InstallAttempt:
        """Write the record and the documents that the machine may fetch; remove the node's earlier ones."""
        with self._locked():
            if documents:
                self._keep(attempt, documents)
            self._write(attempt)
            self._clear(attempt)
        return attempt

    def change(
        self, node: str, change: Callable[[InstallAttempt], InstallAttempt], *, of: str = ""
    ) -> InstallAttempt | None:
        """Change the record and return it; None where there is none, or where it is of another attempt than `of`."""
        with self._locked():
            found = self._load(self._folder / f"{node}.json")
            if found is None or (of and found.id != of):
                return None
            changed = change(found)
            if changed != found:
                self._write(changed)
            return changed

    def rename(self, old: str, new: str) -> None:
        """Make the record of one node that of another name, for the same machine; called again, finish it.

        An ended record of an earlier machine with the new name is replaced, as by an install. Raises `ConflictError`
        where an attempt under either name runs.
        """
        with self._locked():
            found = self._load(self._folder / f"{old}.json")
            if found is None:
                return
            for known in (found, self._load(self._folder / f"{new}.json")):
                if known is not None and known.running:
                    remedy = "wait until its install or its erase has ended, then run the same command again"
                    raise ConflictError(
                        "a machine is installed or erased under this name", where=known.node, remedy=remedy
                    )
            renamed = replace(found, node=new)
            with disk_explained("the install record cannot be renamed", self._folder):
                if (self._folder / old).is_dir():
                    shutil.rmtree(self._folder / new, ignore_errors=True)
                    (self._folder / old).rename(self._folder / new)
                self._write(renamed)
                self._clear(renamed)
                (self._folder / f"{old}.json").unlink()

    def document(self, attempt: InstallAttempt, name: str) -> bytes | None:
        """Return a prepared document; None where there is none of that name."""
        if name not in attempt.documents:
            return None
        return self._bytes(self._of(attempt) / name)

    def keep_log(self, attempt: InstallAttempt, content: bytes) -> None:
        """Write the machine's own log of this attempt; a later one replaces it."""
        with disk_explained("the log cannot be kept", self._of(attempt)):
            self._of(attempt).mkdir(mode=0o700, exist_ok=True, parents=True)
            write_whole(self._of(attempt) / LOG, content, mode=0o600, over=True)

    def log(self, attempt: InstallAttempt) -> bytes | None:
        return self._bytes(self._of(attempt) / LOG) if attempt.id else None

    def note(self, attempt: InstallAttempt, words: str) -> None:
        """Keep one unproven line with the attempt; a later one replaces it."""
        with disk_explained("the note cannot be kept", self._of(attempt)):
            self._of(attempt).mkdir(mode=0o700, exist_ok=True, parents=True)
            write_whole(self._of(attempt) / NOTE, plain(words).encode(), mode=0o600, over=True)

    def noted(self, attempt: InstallAttempt) -> str:
        """Return the unproven line; empty where there is none."""
        found = self._bytes(self._of(attempt) / NOTE) if attempt.id else None
        return found.decode(errors="replace") if found else ""

    # --- files ------------------------------------------------------------------------------------------------------

    def _of(self, attempt: InstallAttempt) -> Path:
        return self._folder / attempt.node / (attempt.id or "none")

    def _keep(self, attempt: InstallAttempt, documents: Mapping[str, bytes]) -> None:
        folder = self._of(attempt)
        with disk_explained("cannot be written", folder):
            for path in (folder.parent, folder):
                path.mkdir(mode=0o700, exist_ok=True)
            for name, content in documents.items():
                write_whole(folder / name, content, mode=0o600, over=True)

    def _clear(self, attempt: InstallAttempt) -> None:
        """Remove the files of earlier attempts, also those of killed runs."""
        folder = self._folder / attempt.node
        for old in folder.iterdir() if folder.is_dir() else ():
            if old.name != attempt.id:
                shutil.rmtree(old, ignore_errors=True)

    def _write(self, attempt: InstallAttempt) -> None:
        file = self._folder / f"{attempt.node}.json"
        with disk_explained("cannot be written", file):
            write_whole(file, _RECORD.dump_json(attempt, indent=1) + b"\n", mode=0o600, over=True)
        _hide(attempt)

    def _load(self, file: Path) -> InstallAttempt | None:
        try:
            found = file.stat()
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
            with self._guard:
                known = self._read.get(file.name)
            if known is not None and known[0] == stamp:
                return known[1]
            content = file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(file, str(error.strerror)) from None
        try:
            attempt = _RECORD.validate_json(content)
        except ValidationError:
            raise _unreadable(file, "it is no record of an install attempt") from None
        with self._guard:
            self._read[file.name] = (stamp, attempt)
        _hide(attempt)
        return attempt

    def _known(self, mark: str) -> InstallAttempt | None:
        """Return the record that `mark` led to last, as it is now. The caller checks whether it still matches."""
        with self._guard:
            node = self._nodes_by_mark.get(mark)
        return self.find(node) if node is not None else None

    def _remembered(self, mark: str, attempt: InstallAttempt | None) -> InstallAttempt | None:
        if attempt is not None:
            with self._guard:
                self._nodes_by_mark[mark] = attempt.node
        return attempt

    def _bytes(self, file: Path) -> bytes | None:
        try:
            return file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(file, str(error.strerror)) from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        file = self._folder / ".lock"
        with disk_explained("cannot be made", self._folder):
            for path in (self._folder.parent, self._folder):
                path.mkdir(mode=0o700, exist_ok=True)
        with disk_explained("cannot be locked", file):
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with disk_explained("cannot be locked", file):
                lock(descriptor)
            yield
        finally:
            os.close(descriptor)


def new_token() -> str:
    """Return a random token in hexadecimal; redaction knows it and its ticket at once."""
    token = secrets.token_hex(TOKEN_BYTES)
    KNOWN.add([token, start_ticket(token)])
    return token


def start_ticket(token: str) -> str:
    """Return what stands for the token where it is shown: it starts the installer until the machine reports itself.

    The token cannot be computed from it.
    """
    return hashlib.sha256(b"start " + token.encode()).hexdigest()


def for_card(name: str, card: Mac) -> str:
    """Return the name of a document that is for the boot of one card."""
    return f"{name}.{card.replace(':', '-')}"


def _same(secret: str, value: str) -> bool:
    return bool(secret) and secrets.compare_digest(secret.encode(), value.encode())


def _hide(attempt: InstallAttempt) -> None:
    if attempt.token:
        KNOWN.add([attempt.token, start_ticket(attempt.token)])


def _unreadable(file: Path, why: str) -> EnvironmentBrokenError:
    return EnvironmentBrokenError(
        f"cannot be read: {why}", where=str(file), remedy="move the file away; the install of that node starts again"
    )
