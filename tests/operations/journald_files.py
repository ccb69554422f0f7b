"""Real journal files of journald, made by systemd-journal-remote, and a `Shell` that reads them with journalctl."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from clusterctl.fleet.finding import Observed
from clusterctl.ports import Deadline, HostAddress, Ran

REMOTE = "/lib/systemd/systemd-journal-remote"
BOOT = "5d0c2f6d7c1a4c0f9a52a4f8a1d0f3b7"


@dataclass(frozen=True)
class Entry:
    """An entry of a journal file; values are text or bytes."""

    at: datetime
    message: str | bytes
    fields: Mapping[str, str] = field(default_factory=dict)


def write_journal(folder: Path, entries: Sequence[Entry]) -> Path:
    """Write a journal file with these entries, in their order."""
    assert shutil.which(REMOTE), "systemd-journal-remote is missing: scripts/debian-packages"
    export = folder / "entries.export"
    export.write_bytes(b"".join(_exported(number, entry) for number, entry in enumerate(entries)))
    file = folder / "journal" / "node.journal"
    file.parent.mkdir()
    subprocess.run([REMOTE, f"--output={file}", str(export)], check=True, capture_output=True, timeout=600)
    return file


def _exported(number: int, entry: Entry) -> bytes:
    """Return an entry in the Journal Export Format; a value with its length, so that it may hold any byte."""
    message = entry.message if isinstance(entry.message, bytes) else entry.message.encode()
    micros = int(entry.at.timestamp() * 1_000_000)
    head = f"__REALTIME_TIMESTAMP={micros}\n__MONOTONIC_TIMESTAMP={number + 1}\n_BOOT_ID={BOOT}\n"
    named = "".join(f"{name}={value}\n" for name, value in entry.fields.items())
    return (head + named).encode() + b"MESSAGE\n" + struct.pack("<Q", len(message)) + message + b"\n\n"


@dataclass
class JournaldHost:
    """Meets `Shell`: runs the real journalctl on a journal file. `ran`: the commands."""

    file: Path
    ran: list[Sequence[str]] = field(default_factory=list)

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        del host, stdin
        self.ran.append(argv)
        command = [word for word in argv if word not in ("sudo", "-n")]
        assert command[0] == "journalctl"
        done = subprocess.run(
            [*command, f"--file={self.file}"], check=False, capture_output=True, text=True, timeout=deadline.remaining
        )
        return Observed(Ran(done.returncode, done.stdout, done.stderr, 0.1), ())
