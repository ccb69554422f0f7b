"""A backup that is encrypted by the site's keys: a header, then one Fernet token per part of the file.

Each token holds the backup's random number, the number of its part, and whether it is the last one: a part that is
lost, repeated, or of another backup is found. A journal need not fit into memory.
"""

from __future__ import annotations

import os
import secrets
import struct
from pathlib import Path
from typing import BinaryIO

from clusterctl.edges.site.site_keys import SiteKeys
from clusterctl.fleet.errors import EnvironmentBrokenError

HEADER = b"clusterctl encrypted backup 1\n"
PART_BYTES = 1 << 20
_LONGEST_TOKEN = 2 * PART_BYTES
"""Bytes: a Fernet token has four for three of its content."""
_HEAD = struct.Struct(">16sQ?")
_CUT = "it is cut off or put together from several"


def encrypt(source: Path, target: Path, keys: SiteKeys) -> None:
    """Write `source`, encrypted, to the new file `target`, which only its owner may read."""
    backup, number = secrets.token_bytes(16), 0
    with source.open("rb") as plain, _new(target) as written:
        written.write(HEADER)
        part = plain.read(PART_BYTES)
        while True:
            after = plain.read(PART_BYTES)
            head = _HEAD.pack(backup, number, not after)
            written.write(keys.encrypt_bytes(head + part) + b"\n")
            if not after:
                return
            part, number = after, number + 1


def decrypt(source: Path, target: Path, keys: SiteKeys) -> None:
    """Write the content of the encrypted backup `source` to the new file `target`.

    Raise `UsageError` where no key of the site decrypts it, and `EnvironmentBrokenError` where it is not whole.
    """
    with source.open("rb") as kept, _new(target) as plain:
        kept.seek(len(HEADER))
        backup, number, ended = b"", 0, False
        while token := kept.readline(_LONGEST_TOKEN):
            content = keys.decrypt_bytes(token.rstrip(b"\n"), str(source))
            if len(content) < _HEAD.size:
                raise _damaged(source)
            found, at, last = _HEAD.unpack_from(content)
            if ended or at != number or (backup and found != backup):
                raise _damaged(source)
            plain.write(content[_HEAD.size :])
            backup, number, ended = found, number + 1, last
    if not ended:
        raise _damaged(source)


def is_encrypted(file: Path) -> bool:
    """Return whether the file is a backup that is encrypted."""
    with file.open("rb") as stream:
        return stream.read(len(HEADER)) == HEADER


def _damaged(file: Path) -> EnvironmentBrokenError:
    return EnvironmentBrokenError(f"the backup is damaged: {_CUT}", where=str(file), remedy="use an older backup")


def _new(file: Path) -> BinaryIO:
    """Open a new file that only its owner may read."""
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "wb")
