"""What a node asks of its network file systems: counters of NFS mounts (/proc/self/mountstats) and of Lustre clients
(`lctl get_param llite.*.stats`), and the node's program that reads both twice.

NFS: nfs-utils, tools/mountstats. Lustre: Lustre Operations Manual, Monitoring Client Activity.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from clusterctl.formats.documents import Within, read_document

_DEVICE = re.compile(r"^device (?P<device>\S{1,1024}) mounted on \S{1,4096} with fstype (?P<type>\S{1,64})")
_BYTES = re.compile(r"^\s*bytes:\s+(?P<values>\d{1,20}(?: \d{1,20}){7})\s*$")
_OPERATION = re.compile(r"^\s*(?P<name>[A-Z_]{2,40}): (?P<count>\d{1,20}) ")
_SERVER_READ, _SERVER_WRITTEN = 4, 5
"""The places of the bytes that came from the server, and went to it, in the line `bytes:`."""
_OF_DATA = frozenset({"NULL", "READ", "READ_PLUS", "WRITE", "COMMIT", "SEQUENCE", "RENEW"})
"""Operations of NFS that move data, or keep a session."""
_CLIENT = re.compile(r"^llite\.(?P<name>[\w.-]{1,200}?)(?:-[0-9a-f]{8,16})?\.stats=")
_SAMPLES = re.compile(r"^(?P<name>\w{1,40})\s+(?P<count>\d{1,20}) samples \[\w{1,10}\](?P<rest>(?: \d{1,40}){0,4})")
_METADATA = frozenset(
    {
        *("open", "close", "create", "mknod", "link", "unlink", "symlink", "mkdir", "rmdir", "rename"),
        *("getattr", "setattr", "readdir", "truncate", "statfs", "getxattr", "setxattr", "listxattr", "removexattr"),
    }
)
_SUM = 2
"""The place of the sum behind the unit: smallest, largest, sum."""


@dataclass(frozen=True, slots=True)
class StorageCounters:
    """Counted since the mount: bytes from and to the servers, and operations that move no data."""

    read_bytes: int
    written_bytes: int
    metadata: int


Counters = Mapping[str, StorageCounters]
"""By file system: `server:/export` of NFS, the name of a Lustre file system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    mountstats: str = ""
    llite: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    version: Literal[1]
    seconds: Annotated[float, Within(gt=0, allow_inf_nan=False)]
    before: _Reading
    after: _Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageReadings:
    """Two readings of one node, `seconds` apart."""

    seconds: float
    before: Counters
    after: Counters


def parse_readings(text: str, *, where: str) -> StorageReadings:
    """Return the answer of the node's program. Raise `ParseError` for what is none."""
    found = read_document(_Answer, text, where)
    before, after = (
        {**parse_mountstats(one.mountstats), **parse_llite(one.llite)} for one in (found.before, found.after)
    )
    return StorageReadings(seconds=found.seconds, before=before, after=after)


def parse_mountstats(text: str) -> Counters:
    """Return the counters of each NFS mount; mounts of one export share theirs. What has no counters is left out."""
    found: dict[str, StorageCounters] = {}
    for device, lines in _sections(text):
        moved = next((match for line in lines if (match := _BYTES.match(line))), None)
        if moved is None or device in found:
            continue
        values = moved["values"].split()
        operations = [match for line in lines if (match := _OPERATION.match(line))]
        metadata = sum(int(one["count"]) for one in operations if one["name"] not in _OF_DATA)
        found[device] = StorageCounters(int(values[_SERVER_READ]), int(values[_SERVER_WRITTEN]), metadata)
    return found


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each NFS mount's device and lines."""
    device, lines = "", list[str]()
    for line in text.splitlines():
        if match := _DEVICE.match(line):
            if device:
                yield device, lines
            device, lines = match["device"] if match["type"] in ("nfs", "nfs4") else "", []
        else:
            lines.append(line)
    if device:
        yield device, lines


def parse_llite(text: str) -> Counters:
    """Return the counters of each Lustre file system; several mounts of one are added up."""
    sums: dict[str, list[int]] = {}
    name = ""
    for line in text.splitlines():
        if match := _CLIENT.match(line):
            name = match["name"]
            sums.setdefault(name, [0, 0, 0])
        elif name and (match := _SAMPLES.match(line)):
            values = match["rest"].split()
            total = int(values[_SUM]) if len(values) > _SUM else 0
            sums[name][0] += total if match["name"] == "read_bytes" else 0
            sums[name][1] += total if match["name"] == "write_bytes" else 0
            sums[name][2] += int(match["count"]) if match["name"] in _METADATA else 0
    return {name: StorageCounters(*values) for name, values in sums.items()}
