"""A fleet's recordings judged on all of the controller's processors."""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from clusterctl.fleet.errors import UsageError
from clusterctl.operations.judging_input import Judges, read_recording
from clusterctl_burnin.recordings.rejudge import Judged, Rejudging

SHARE = 16
"""So many recordings are worth a process of their own: it costs as much as a few of them."""


def judged_of(files: Sequence[Path], site: Path) -> Iterator[Judged]:
    """Each recording judged, in the order of `files`. Raises UsageError of the first that cannot be."""
    seen: dict[str, Path] = {}
    for file, one in zip(files, _all(files, site), strict=True):
        node = one.verdict.node
        if node in seen:
            message = f"{node} is recorded in {seen[node]} already"
            raise UsageError(message, where=str(file), remedy="keep one recording of each node")
        seen[node] = file
        yield one


def _all(files: Sequence[Path], site: Path) -> Iterator[Judged]:
    bench = _Bench(site)
    workers = min(len(os.sched_getaffinity(0)), len(files) // SHARE)
    if workers < 2:
        yield from map(bench.judged, files)
        return
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, context, initializer=_sit, initargs=(bench,)) as pool:
        yield from pool.map(_judged, files, chunksize=4)


class _Bench:
    """What a process judges by."""

    def __init__(self, site: Path) -> None:
        self._judges = Judges(site)
        self._judging = Rejudging(self._judges.suite.checks, self._judges.suite.solo)

    def judged(self, file: Path) -> Judged:
        recording = read_recording(file, self._judges.owner)
        return self._judging.judged(recording, self._judges.kind(recording.sku, file))


_benches: list[_Bench] = []
"""The one of a process of the pool, which has it from the process that it was forked from."""


def _sit(bench: _Bench) -> None:
    gc.disable()
    _benches.append(bench)


def _judged(file: Path) -> Judged:
    return _benches[-1].judged(file)
