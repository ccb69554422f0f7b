"""A journal on a disk that fails: `faulty_disk.c` makes I/O calls fail or records them, and crashes are replayed.

As SQLite tests itself (https://www.sqlite.org/testing.html, sections 3.2 and 3.3): the nth call fails, for each n; and
after each call the power goes, with any of the writes that were not synced lost, torn or done.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Engine, event

from clusterctl.edges.journal import Holder, open_journal
from clusterctl.edges.journal.verification import verify
from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.finding import Evidence, Origin
from tests.edges.journal.life import AT, StepClock, added
from tests.events import data_of, new_event
from tests.paths import ROOT

SOURCE = Path(__file__).with_name("faulty_disk.c")
APPENDS = 12
SECTOR = 512
FAULTS: Mapping[str, Mapping[str, str]] = {
    "EIO once": {"FAULTY_DISK_ERRNO": str(errno.EIO)},
    "EIO from then on": {"FAULTY_DISK_ERRNO": str(errno.EIO), "FAULTY_DISK_KEEP": "1"},
    "full, half written": {"FAULTY_DISK_ERRNO": str(errno.ENOSPC), "FAULTY_DISK_SHORT": "1"},
    "full from then on": {"FAULTY_DISK_ERRNO": str(errno.ENOSPC), "FAULTY_DISK_KEEP": "1"},
}


def compiled(folder: Path) -> Path:
    """Compile the shim."""
    library = folder / "faulty_disk.so"
    subprocess.run(("gcc", "-Wall", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl", "-lpthread"), check=True)
    return library


def new_journal(folder: Path) -> Path:
    """Make an empty journal; the file is complete and closed."""
    folder.mkdir()
    open_journal(f"sqlite:///{folder}/journal.db", StepClock()).close()
    return folder / "journal.db"


@event.listens_for(Engine, "connect")
def _checkpoint_often(connection: object, _record: object) -> None:
    """A log of a few pages, so that a short run writes its pages back several times."""
    if os.environ.get("FAULTY_DISK_NAME"):
        connection.execute("PRAGMA wal_autocheckpoint=8")  # type: ignore[attr-defined]


def write(file: Path, acknowledged: int) -> None:
    """Append events and evidence; write `A n` to the descriptor for each append that returned, `E kind` for an error."""
    try:
        book = open_journal(f"sqlite:///{file}", StepClock(), Holder("r1"))
    except ClusterctlError as error:
        os.write(acknowledged, f"E {error.kind}\n".encode())
        return
    for number in range(APPENDS):
        message = {"at": "2026-01-01T00:00:00+00:00", "message": str(number)}
        try:
            book.store([Evidence("dmesg", str(number), AT, Origin.REAL, random.Random(number).randbytes(9000))])
            book.append([added()] if number == 0 else [new_event("node", "n1", Kind.INSTALL_PROGRESS, message)])
        except ClusterctlError as error:
            os.write(acknowledged, f"E {error.kind}\n".encode())
        else:
            os.write(acknowledged, f"A {number}\n".encode())
    book.close()


def lost(file: Path, acknowledged: Sequence[int]) -> str:
    """Return what a journal lacks of what was acknowledged, or what is damaged in it; empty where it is right."""
    url = f"sqlite:///{file}"
    try:
        damages = verify(url).damages
        with closing(open_journal(url, StepClock())) as book:
            there = [int(data_of(one).get("message", 0)) for one in book.history(Stream.NODE, "n1")]
    except ClusterctlError as error:
        return str(error)
    missing = sorted(set(acknowledged) - set(there))
    twice = len(there) != len(set(there))
    return f"missing {missing}, twice {twice}, {damages[:2]}" if missing or twice or damages else ""


def failing_calls(library: Path, folder: Path, numbers: Sequence[int], faults: Sequence[str]) -> Iterator[str]:
    """Yield one line for each fault at each of the numbered calls at which something acknowledged is lost."""
    argv = (sys.executable, "-m", "tests.edges.journal.faulty_disk", str(folder))
    env = {**os.environ, "LD_PRELOAD": str(library), "FAULTY_DISK_NAME": "journal.db"}
    base = new_journal(folder)
    for name in faults:
        asked = "\n".join(map(str, numbers))
        ran = subprocess.run(
            argv, input=asked, env={**env, **FAULTS[name]}, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        for line in ran.stdout.splitlines():
            number, _, rest = line.partition(" ")
            copy = folder / f"{number}" / "journal.db"
            words = rest.split(",")
            done = [int(word[2:]) for word in words if word.startswith("A ")]
            assert all(word.startswith(("A ", "E ")) for word in words if word), f"{name} at call {number}: {rest}"
            if complaint := lost(copy, done):
                yield f"{name} at call {number}: {complaint}"
            shutil.rmtree(copy.parent)
    base.unlink()


def _fork_each(folder: Path) -> None:
    """For each number on stdin: a child writes to a copy of the journal, with that call failing."""
    for number in sys.stdin.read().split():
        place = folder / number
        place.mkdir()
        shutil.copyfile(folder / "journal.db", place / "journal.db")
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.environ["FAULTY_DISK_FAIL"] = number
            status = 1
            try:
                write(place / "journal.db", writer)
                status = 0
            finally:
                os._exit(status)
        os.close(writer)
        with os.fdopen(reader) as answers:
            text = ",".join(answers.read().splitlines())
        _, status = os.waitpid(child, 0)
        print(number, text if status == 0 else f"{text},crashed with {status}", flush=True)


@dataclass
class Call:
    """One recorded call: `W` write, `S` sync, `T` truncate, `U` unlink, `A` acknowledgement."""

    kind: str
    file: str = ""
    at: int = 0
    content: bytes = b""


def recorded(library: Path, folder: Path) -> tuple[Path, list[Call]]:
    """Run the writer once; return the journal of before, and its calls."""
    base = new_journal(folder)
    shutil.copyfile(base, folder / "before")
    trace = folder / "calls"
    env = {"LD_PRELOAD": str(library), "FAULTY_DISK_NAME": "journal.db", "FAULTY_DISK_TRACE": str(trace)}
    argv = (sys.executable, "-m", "tests.edges.journal.faulty_disk", "record", str(base), str(trace))
    subprocess.run(argv, env={**os.environ, **env}, cwd=ROOT, check=True)
    return folder / "before", list(_parsed(trace.read_bytes()))


def _parsed(text: bytes) -> Iterator[Call]:
    while text:
        line, _, text = text.partition(b"\n")
        kind, *words = line.decode().split(" ")
        match kind:
            case "W":
                size = int(words[2])
                yield Call(kind, Path(words[0]).name, int(words[1]), text[:size])
                text = text[size:]
            case "T":
                yield Call(kind, Path(words[0]).name, int(words[1]))
            case "A":
                yield Call(kind, at=int(words[0]))
            case _:
                yield Call(kind, Path(words[0]).name)


@dataclass
class Disk:
    """What a disk holds for certain, and what was written since the last sync of each file."""

    synced: dict[str, bytearray]
    pending: dict[str, list[Call]] = field(default_factory=dict)

    def take(self, call: Call) -> None:
        if call.kind == "S":
            for earlier in self.pending.pop(call.file, []):
                self._apply(self.synced, earlier)
        elif call.kind in "WTU":
            self.pending.setdefault(call.file, []).append(call)

    def after_power_loss(self, chance: random.Random) -> dict[str, bytearray]:
        """Return one of the contents that the disk may have now."""
        files = {name: bytearray(content) for name, content in self.synced.items()}
        kept = chance.choice((0.0, 0.5, 1.0))
        for call in [one for calls in self.pending.values() for one in calls]:
            if chance.random() < kept:
                torn = call.kind == "W" and chance.random() < 0.3
                self._apply(files, self._torn(call, chance) if torn else call)
        return files

    def _torn(self, call: Call, chance: random.Random) -> Call:
        size = SECTOR * chance.randint(0, len(call.content) // SECTOR)
        return Call("W", call.file, call.at, call.content[:size])

    def _apply(self, files: dict[str, bytearray], call: Call) -> None:
        if call.kind == "U":
            files.pop(call.file, None)
            return
        content = files.setdefault(call.file, bytearray())
        end = call.at + len(call.content)
        if call.kind == "T":
            del content[call.at :]
        content.extend(bytes(max(0, end - len(content))))
        if call.kind == "W":
            content[call.at : end] = call.content


def power_losses(before: Path, calls: Sequence[Call], folder: Path, chance: random.Random, each: int) -> Iterator[str]:
    """Yield one line for each crash after which something acknowledged is lost: `each` crashes after every call."""
    disk = Disk({"journal.db": bytearray(before.read_bytes())})
    acknowledged: list[int] = []
    for number, call in enumerate(calls):
        if call.kind == "A":
            acknowledged.append(call.at)
        disk.take(call)
        for crash in range(each):
            place = folder / f"{number}-{crash}"
            place.mkdir(parents=True)
            for name, content in disk.after_power_loss(chance).items():
                (place / name).write_bytes(content)
            if complaint := lost(place / "journal.db", acknowledged):
                yield f"power lost after call {number}: {complaint}"
            shutil.rmtree(place)


if __name__ == "__main__":
    if sys.argv[1] == "record":
        descriptor = os.open(sys.argv[3], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        write(Path(sys.argv[2]), descriptor)
    else:
        _fork_each(Path(sys.argv[1]))
