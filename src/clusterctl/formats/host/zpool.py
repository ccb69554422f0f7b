"""What `zpool status -p` says of ZFS pools. Until OpenZFS 2.3 it has no JSON: the text of zpool-status(8) is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pydantic

from clusterctl.fleet.errors import ParseError

_WHERE = "zpool status"
_NONE = "no pools available"
_FIELD = re.compile(r"^ {0,6}(pool|state|status|action|see|scan|config|errors|remove|checkpoint|dedup): ?(.*)$")
_STATES = frozenset({"ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "REMOVED", "UNAVAIL", "SUSPENDED", "AVAIL", "INUSE"})
_SECTIONS = frozenset({"logs", "cache", "spares", "special", "dedup"})


@dataclass(frozen=True, slots=True)
class PoolDevice:
    """One row of the table: the pool itself, a group (`raidz1-0`) or a disk. `errors` are those of reading, writing and
    checksums, all 0 for a spare; `note` is what stands behind them (`was /dev/disk/by-id/…`, `(resilvering)`).
    """

    name: str
    state: str
    depth: int
    errors: tuple[int, int, int] = (0, 0, 0)
    note: str = ""


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """`status` and `action` are empty where nothing is wrong; `errors` is the line on lost data, in zpool's words."""

    name: str
    state: str
    status: str
    action: str
    errors: str
    devices: tuple[PoolDevice, ...]

    @property
    def disks(self) -> tuple[PoolDevice, ...]:
        """The rows that nothing hangs below."""
        depths = (*(device.depth for device in self.devices[1:]), 0)
        rows = zip(self.devices[1:], depths[1:], strict=True)
        return tuple(device for device, after in rows if after <= device.depth)


def parse_zpool_status(text: str) -> tuple[PoolStatus, ...]:
    """All pools, none where it says that there are none. Raises `ParseError` where it says neither."""
    if text.strip() == _NONE:
        return ()
    pools = tuple(_pool(fields) for fields in _blocks(text))
    if not pools:
        raise ParseError(f"tells of no pool, and not that there is none: {text.strip()[:100]!r}", where=_WHERE)
    return pools


def _blocks(text: str) -> Iterator[Mapping[str, list[str]]]:
    """The lines of each pool by the field that they belong to."""
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
    told = {name: " ".join(" ".join(lines).split()) for name, lines in fields.items() if name != "config"}
    for name in ("pool", "state", "errors"):
        if not told.get(name):
            raise ParseError(f"a pool without {name}", where=_WHERE)
    devices = tuple(_devices(fields.get("config", ())))
    if not devices or devices[0].name != told["pool"]:
        raise ParseError(f"no devices of pool {told['pool']}", where=_WHERE)
    status, action = told.get("status", ""), told.get("action", "")
    return PoolStatus(told["pool"], told["state"], status, action, told["errors"], devices)


def _devices(lines: Iterator[str] | list[str] | tuple[str, ...]) -> Iterator[PoolDevice]:
    for line in lines:
        words = line.split()
        if not words or words[0] == "NAME" or (len(words) == 1 and words[0] in _SECTIONS):
            continue
        if len(words) < 2 or words[1] not in _STATES:
            raise ParseError(f"not understood: {line.strip()!r}", where=_WHERE)
        depth = (len(line.lstrip("\t").rstrip()) - len(line.strip())) // 2
        if len(words) < 5:
            yield PoolDevice(words[0], words[1], depth, note=" ".join(words[2:]))
        elif all(word.isdigit() for word in words[2:5]):
            read, write, checksum = (int(word) for word in words[2:5])
            yield PoolDevice(words[0], words[1], depth, (read, write, checksum), " ".join(words[5:]))
        elif words[1] in ("AVAIL", "INUSE"):
            yield PoolDevice(words[0], words[1], depth, note=" ".join(words[2:]))
        else:
            raise ParseError(f"counters not understood: {line.strip()!r}", where=_WHERE)


RECORD = "/etc/clusterctl/zfs_pool.json"


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """The pool's name, and where its file system is mounted."""

    pool: str
    mountpoint: str


class _Document(pydantic.BaseModel):
    pool: str = pydantic.Field(min_length=1)
    mountpoint: str = pydantic.Field(pattern="^/.")


def parse_pool_record(text: str) -> PoolRecord | None:
    """Read the file's content, or `null` for a host that has none. Raises `ParseError` for anything else."""
    if text.strip() == "null":
        return None
    try:
        document = _Document.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise ParseError(f"not understood: {field} {first['msg']}".replace("  ", " "), where=RECORD) from None
    return PoolRecord(document.pool, document.mountpoint)
