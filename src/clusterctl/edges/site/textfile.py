"""Operators' text files, with an error message for everything that can be wrong with a file."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

from clusterctl.fleet.errors import UsageError
from clusterctl.formats.site.yaml_document import Document, parse_yaml

MAX_BYTES = 4 * 1024 * 1024
MAX_PLAN_BYTES = 64 * 1024 * 1024
"""A wiring plan of 4,096 nodes × 8 rails with its trunks has 10 MB."""
_WHICH = "name the right file, or take the surplus out"
_REASONS = {
    errno.ELOOP: ("is a link that leads back to itself", "point the link at the file"),
    errno.EACCES: ("may not be read", "check its owner and mode, and those of the folders above it"),
    errno.ENOTDIR: ("lies below something that is no directory", "check the path"),
    errno.ENAMETOOLONG: ("has a name that is too long", "check the path"),
    errno.ENXIO: ("is no regular file", "name a file"),
}
"""The system's error → our message, and the remedy."""


def read_text(file: Path, named_by: str = "") -> str:
    """Return an operator's text file: it exists, is a file, of sane size, UTF-8.

    `named_by` is the field that names it (`site.yml:12 nodes.csv`): where it cannot be opened, the error is there.
    """
    return decoded(read_bytes(file, named_by), file)


def decoded(data: bytes, file: Path) -> str:
    """Return the text of UTF-8 bytes of `file`."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UsageError("is UTF-16, not UTF-8", where=f"{file}:1", remedy="save it as UTF-8 (in Excel: CSV UTF-8)")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"{file}:{_line(data, error.start)}"
        message = f"is not UTF-8 text: byte 0x{data[error.start]:02x}"
        raise UsageError(message, where=where, remedy="save it as UTF-8") from None
    if "\0" in text:
        where = f"{file}:{_line(data, data.index(0))}"
        raise UsageError("holds a NUL byte: it is no text", where=where, remedy="save it as UTF-8 text")
    return text


def read_bytes(
    file: Path,
    named_by: str = "",
    max_bytes: int = MAX_BYTES,
    check: Callable[[os.stat_result], None] | None = None,
    *,
    follow: bool = True,
) -> bytes:
    """Return the content of a regular file; nothing larger is read, and nothing that would wait (a pipe) is opened.

    `check` sees owner and mode of the file that is read, and raises where it must not be believed. Without `follow` a
    link is refused.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
        try:
            found = os.fstat(descriptor)
            mode = found.st_mode
            if stat.S_ISDIR(mode):
                raise _refused("is a directory, not a file", file, named_by, "name the file itself")
            if not stat.S_ISREG(mode):
                raise _refused("is no regular file but a pipe or device", file, named_by, "name a file")
            if check is not None:
                check(found)
            with open(descriptor, "rb", closefd=False) as stream:
                data = stream.read(max_bytes + 1)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        raise _unopened(error, file, named_by) from None
    if len(data) > max_bytes:
        raise _refused(f"is larger than {max_bytes >> 20} MiB", file, named_by, _WHICH)
    return data


def read_yaml(file: Path, named_by: str = "") -> Document:
    """Return a YAML file, with the line of each of its values."""
    return parse_yaml(read_text(file, named_by), str(file))


def there(file: Path) -> bool:
    """Return True for a present file, also for a link to nowhere: an operator put it there, so it is meant.

    Raises `UsageError` where the folders above it do not let one look.
    """
    try:
        return file.is_symlink() or file.exists()
    except OSError as error:
        raise _unopened(error, file, "") from None


def _unopened(error: OSError | ValueError, file: Path, named_by: str) -> UsageError:
    if isinstance(error, ValueError):
        return _refused("is no path", file, named_by, "take the NUL byte out")
    if isinstance(error, FileNotFoundError):
        if file.is_symlink():
            message = f"is a link to {file.readlink()}, which does not exist"
            return _refused(message, file, named_by, "point the link at the file")
        other = "name another file here" if named_by else "write a new site with clusterctl init DIR"
        return _refused("does not exist", file, named_by, f"create it, or {other}")
    known = _REASONS.get(error.errno or 0)
    if known is not None:
        return _refused(known[0], file, named_by, known[1])
    return _refused(f"cannot be read: {error.strerror}", file, named_by, "correct that, then try again")


def _refused(message: str, file: Path, named_by: str, remedy: str) -> UsageError:
    if named_by:
        return UsageError(f"{file} {message}", where=named_by, remedy=remedy)
    return UsageError(message, where=str(file), remedy=remedy)


def _line(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, at) + 1
