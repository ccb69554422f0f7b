"""ZFS pools: `zpool status -p` as text (no JSON before OpenZFS 2.3), and the role's record of the intended pool."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import Text, Within, read_document

_WHERE = "zpool status"
_NONE = "no pools available"
_FIELD = re.compile(r"^ {0,6}(pool|state|status|action|see|scan|config|errors|remove|checkpoint|dedup): ?(.*)$")
_STATES = frozenset({"ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "REMOVED", "UNAVAIL", "SUSPENDED", "AVAIL", "INUSE"})
_COUNT = re.compile(r"[0-9]{1,20}")
_LOST = re.compile(r"[0-9]{1,20} data errors|Permanent errors")  # with -v, a list of files
_NOTHING_LOST = "No known data errors"
_SECTIONS = frozenset({"logs", "cache", "spares", "special", "dedup"})


@dataclass(frozen=True, slots=True)
class PoolDevice:
    """One row of the table: the pool itself, a group (`raidz1-0`) or a disk.

    `errors` count read, write and checksum errors, all 0 for a spare. `note` is the rest of the row
    (`was /dev/disk/by-id/…`, `(resilvering)`).
    """

    name: str
    state: str
    depth: int
    errors: tuple[int, int, int] = (0, 0, 0)
    note: str = ""


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """One pool. `status` and `action` are empty for a healthy pool; `errors` is zpool's line about lost data."""

    name: str
    state: str
    status: str
    action: str
    errors: str
    devices: tuple[PoolDevice, ...]

    @property
    def has_lost_data(self) -> bool | None:
        """None where the pool cannot be asked: it is suspended."""
        if self.errors == _NOTHING_LOST:
            return False
        return True if _LOST.match(self.errors) else None

    def is_replaced(self, disk: PoolDevice) -> bool:
        """Whether another disk is being filled in the disk's place: zpool has both below a group `replacing-N`."""
        above = [one for one in self.devices[: self.devices.index(disk)] if one.depth < disk.depth]
        return bool(above) and above[-1].name.partition("-")[0] == "replacing"

    @property
    def disks(self) -> tuple[PoolDevice, ...]:
        """The rows without a row below them."""
        depths = (*(device.depth for device in self.devices[1:]), 0)
        rows = zip(self.devices[1:], depths[1:], strict=True)
        return tuple(device for device, after in rows if after <= device.depth)


def parse_zpool_status(text: str) -> tuple[PoolStatus, ...]:
    """Return all pools; none for `no pools available`. Raises `ParseError` for any other text without a pool."""
    if text.strip() == _NONE:
        return ()
    pools = tuple(_pool(fields) for fields in _blocks(text))
    if not pools:
        raise ParseError(f"no pool in it, and no line {_NONE!r}: {text.strip()[:100]!r}", where=_WHERE)
    return pools


def _blocks(text: str) -> Iterator[Mapping[str, list[str]]]:
    """Yield the lines of each pool by field."""
    fields: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        found = _FIELD.match(line)
        if found is None:
            current.append(line)
            continue
        if found[1] == "pool" and fields:
            yield fields
            fields = {}
        current = fields.setdefault(found[1], [])
        current.append(found[2])
    if fields:
        yield fields


def _pool(fields: Mapping[str, list[str]]) -> PoolStatus:
    values = {name: " ".join(" ".join(lines).split()) for name, lines in fields.items() if name != "config"}
    for name in ("pool", "state", "errors"):
        if not values.get(name):
            raise ParseError(f"a pool without {name}", where=_WHERE)
    devices = tuple(_devices(fields.get("config", ())))
    if not devices or devices[0].name != values["pool"]:
        raise ParseError(f"no devices of pool {values['pool']}", where=_WHERE)
    status, action = values.get("status", ""), values.get("action", "")
    return PoolStatus(values["pool"], values["state"], status, action, values["errors"], devices)


def _devices(lines: Iterable[str]) -> Iterator[PoolDevice]:
    for line in lines:
        words = line.split()
        if words and words[0] != "NAME" and not (len(words) == 1 and words[0] in _SECTIONS):
            yield _device(line, words)


def _device(line: str, words: list[str]) -> PoolDevice:
    """Return one row: name, state, and the counts of errors, which spares and cut rows lack; the rest is a note."""
    if len(words) < 2 or words[1] not in _STATES:
        raise ParseError(f"not understood: {line.strip()!r}", where=_WHERE)
    depth = (len(line.lstrip("\t").rstrip()) - len(line.strip())) // 2
    if len(words) >= 5 and all(_COUNT.fullmatch(word) for word in words[2:5]):
        read, write, checksum = (int(word) for word in words[2:5])
        return PoolDevice(words[0], words[1], depth, (read, write, checksum), " ".join(words[5:]))
    if len(words) < 5 or words[1] in ("AVAIL", "INUSE"):
        return PoolDevice(words[0], words[1], depth, note=" ".join(words[2:]))
    raise ParseError(f"counters not understood: {line.strip()!r}", where=_WHERE)


RECORD = "/etc/clusterctl/zfs_pool.json"


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """Name of the pool, and mount point of its file system."""

    pool: str
    mountpoint: str


@dataclass(frozen=True, slots=True)
class _Document:
    pool: Text
    mountpoint: Annotated[str, Within(pattern="^/.")]


def parse_pool_record(text: str) -> PoolRecord | None:
    """Return the content of `RECORD`; None for `null`, which stands for a missing file. Raises `ParseError`."""
    if text.strip() == "null":
        return None
    document = read_document(_Document, text, RECORD)
    return PoolRecord(document.pool, document.mountpoint)
