"""What jobs ask of network file systems: rates of their nodes, added up by job and file system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from clusterctl.formats.host.storage_clients import StorageReadings


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRates:
    """Of one file system, a second: operations without data, bytes from and to the servers."""

    metadata: float
    read_bytes: float
    written_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageLoad:
    """What the nodes of a job ask of a file system together. `jobs`: several, where they share nodes: the node's
    counters do not separate them. `nodes`: how many of them have it mounted.
    """

    jobs: tuple[str, ...]
    filesystem: str
    nodes: int
    rates: StorageRates


def rates(found: StorageReadings) -> Mapping[str, StorageRates]:
    """Return the rates by file system. One that was mounted, or mounted again, between the readings has none."""
    return dict(_rates(found))


def _rates(found: StorageReadings) -> Iterator[tuple[str, StorageRates]]:
    for name, after in found.after.items():
        before = found.before.get(name)
        if before is None:
            continue
        grown = [
            after.metadata - before.metadata,
            after.read_bytes - before.read_bytes,
            after.written_bytes - before.written_bytes,
        ]
        if min(grown) >= 0:
            metadata, read, written = (value / found.seconds for value in grown)
            yield name, StorageRates(metadata=metadata, read_bytes=read, written_bytes=written)


def loads(jobs: Mapping[str, Iterable[str]], nodes: Mapping[str, StorageReadings]) -> tuple[StorageLoad, ...]:
    """Return the loads, those with the most operations first, then those with the most bytes.

    jobs   the nodes of each job
    nodes  the readings of each node that was read
    """
    of_node: dict[str, list[str]] = {}
    for job, names in jobs.items():
        for name in names:
            of_node.setdefault(name, []).append(job)
    found: dict[tuple[tuple[str, ...], str], list[StorageRates]] = {}
    for name, readings in nodes.items():
        for filesystem, one in rates(readings).items():
            found.setdefault((tuple(sorted(of_node.get(name, ()))), filesystem), []).append(one)
    return tuple(sorted((_sum(*key, values) for key, values in found.items()), key=_order))


def _sum(jobs: tuple[str, ...], filesystem: str, values: list[StorageRates]) -> StorageLoad:
    total = StorageRates(
        metadata=sum(one.metadata for one in values),
        read_bytes=sum(one.read_bytes for one in values),
        written_bytes=sum(one.written_bytes for one in values),
    )
    return StorageLoad(jobs=jobs, filesystem=filesystem, nodes=len(values), rates=total)


def _order(load: StorageLoad) -> tuple[float, float, tuple[str, ...], str]:
    return -load.rates.metadata, -(load.rates.read_bytes + load.rates.written_bytes), load.jobs, load.filesystem
