"""Where a site's secrets turn up that they must not: searched for as they are, escaped, quoted, and in base64."""

from __future__ import annotations

import base64
import json
import os
import re
import sqlite3
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, quote_plus

from tests.e2e.sampling import Sampler
from tests.processes import commands

KEY_LINE = re.compile(r"^[A-Za-z0-9+/]{40,}=*$")
SHORTEST = 12
PERIOD_S = 0.1


def secrets_of(site: Path) -> dict[str, str]:
    """What it is → the secret: passwords, the parts of MAAS's key, every line of private keys but the first.

    The first is the format's head, which all of them share.
    """
    found = {"BMC password": (site / "secrets/bmc-password").read_text().strip()}
    parts = (site / "secrets/maas-api-key").read_text().strip().split(":")
    found |= {f"MAAS key, part {number}": part for number, part in enumerate(parts, start=1)}
    for file in (site / "secrets/ssh_ed25519", *sorted((site / "state/host_keys").iterdir())):
        lines = (line for line in file.read_text().splitlines() if KEY_LINE.match(line))
        found |= {
            f"private key {file.name}, line {number}": line for number, line in enumerate(lines, start=1) if number > 1
        }
    assert all(len(secret) >= SHORTEST for secret in found.values())
    return found


class Search:
    """Finds secrets in anything."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._names = {form: name for name, secret in secrets.items() for form in _forms(secret.encode())}

    def __call__(self, content: bytes, where: str) -> list[str]:
        """`WHERE holds the WHAT`, for each that `content` holds."""
        found = {name for form, name in self._names.items() if form in content}
        return [f"{where} holds the {name}" for name in sorted(found)]


def journal_contents(file: Path) -> Iterator[tuple[str, bytes]]:
    """Every value of every table, evidence unpacked; then the files themselves, with what was deleted in them."""
    with closing(sqlite3.connect(file)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    yield f"table {table}", zlib.decompress(value) if isinstance(value, bytes) else str(value).encode()
    for path in file.parent.glob(f"{file.name}*"):
        yield str(path), path.read_bytes()


class Watch(Sampler):
    """Notes, while it is entered, every command line of this machine and every file below `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(PERIOD_S)
        self.commands: set[str] = set()
        self.files: dict[Path, bytes] = {}
        self.modes: dict[Path, int] = {}
        self._folder = folder

    def look(self) -> None:
        self.commands.update(commands())
        for folder, _, names in os.walk(self._folder):
            for path in (Path(folder), *(Path(folder, name) for name in names)):
                self._note(path)

    def _note(self, path: Path) -> None:
        try:
            status = path.lstat()
            self.modes[path] = status.st_mode
            if stat.S_ISREG(status.st_mode) and len(self.files.get(path, b"")) != status.st_size:
                self.files[path] = path.read_bytes()
        except FileNotFoundError:  # removed since it was listed
            return


def _forms(secret: bytes) -> Iterator[bytes]:
    """As it is, in JSON, quoted for URLs and forms, and within base64 at each of the three ways it can lie there."""
    yield secret
    yield json.dumps(secret.decode())[1:-1].encode()
    yield json.dumps(secret.decode(), ensure_ascii=False)[1:-1].encode()
    yield quote(secret, safe="").encode()
    yield quote_plus(secret).encode()
    yield quote(quote(secret, safe=""), safe="").encode()
    for shift in range(3):
        whole = base64.b64encode(bytes(shift) + secret)
        yield whole[-(-8 * shift // 6) : 8 * (shift + len(secret)) // 6]
