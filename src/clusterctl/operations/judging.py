"""Recorded burn-ins judged again, by the site's limits or the shipped ones, on all of the controller's processors.

A bare answer, NODE.json as the node printed it, is completed with what the site's journal knows of the node.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from clusterctl.edges.site import contents, load_site
from clusterctl.edges.site.skus import read_skus
from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.errors import UsageError
from clusterctl.formats.site.yaml_document import parse_yaml
from clusterctl.operations.collector import collector_paused
from clusterctl.operations.documents import as_usage, content
from clusterctl_burnin.fleet_stats import Unjudged
from clusterctl_burnin.limits.reading import shipped_limits
from clusterctl_burnin.recordings.recording import Recording, parse_recording
from clusterctl_burnin.recordings.rejudge import JudgedRecording, NodeVerdict, RecordedMachineKind, Rejudging, verdicts
from clusterctl_burnin.suites.suite import Suite, shipped_suite

SHARE = 16
"""Recordings for which a process of its own is worth its start."""
EXPLAINED = "docs/how-to/burnin-judge.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """`recorded`: a folder with NODE.json or NODE/recording.json of each node."""

    recorded: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeResult:
    """The verdicts by node, and what could not be compared over the fleet."""

    nodes: tuple[NodeVerdict, ...]
    not_compared: tuple[Unjudged, ...]

    @property
    def exit_code(self) -> int:
        """0: every node passed."""
        return 0 if all(node.verdict.admits for node in self.nodes) else 1


def run(folder: Path, request: JudgeRequest) -> JudgeResult:
    """Judge the recordings by the site in `folder`; without a site, by the shipped limits. Changes nothing."""
    with collector_paused():
        nodes, unjudged = verdicts(_judged_of(_recordings_in(request.recorded), folder))
    return JudgeResult(nodes=nodes, not_compared=unjudged)


def _recordings_in(folder: Path) -> tuple[Path, ...]:
    files = sorted([*folder.glob("*.json"), *folder.glob("*/recording.json")])
    if not files:
        remedy = f"put a recording of each node into it, as {EXPLAINED} shows"
        raise UsageError("holds no recording", where=str(folder), remedy=remedy)
    return tuple(files)


def _judged_of(files: Sequence[Path], site: Path) -> Iterator[JudgedRecording]:
    """Yield each recording judged, in the order of `files`. Raises `UsageError` for the first that cannot be."""
    seen: dict[str, Path] = {}
    for file, one in zip(files, _all(files, site), strict=True):
        node = one.verdict.node
        if node in seen:
            message = f"{node} is recorded in {seen[node]} already"
            raise UsageError(message, where=str(file), remedy="keep one recording of each node")
        seen[node] = file
        yield one


def _all(files: Sequence[Path], site: Path) -> Iterator[JudgedRecording]:
    judge = Judge(site)
    workers = min(len(os.sched_getaffinity(0)), len(files) // SHARE)
    if workers < 2:
        yield from map(judge.judged, files)
        return
    yield judge.judged(files[0])  # before the processes start: they inherit the limits and rules that it has read
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(judge,)) as pool:
        yield from pool.map(_judged, files[1:], chunksize=4)


class Judge:
    """Judges recordings by the limits of their SKUs, which are read at their first use."""

    def __init__(self, folder: Path) -> None:
        self._site = load_site(folder) if (folder / "site.yml").exists() else None
        self._folder = folder
        self._kinds: dict[str, RecordedMachineKind] = {}
        if self._site is not None:
            self._kinds |= {
                sku.name: RecordedMachineKind(sku, contents.limits(self._site, sku.limits)) for sku in self._site.skus
            }
        suite = self._suite()
        self._rejudging = Rejudging(suite.checks, suite.solo)

    def judged(self, file: Path) -> JudgedRecording:
        recording = self._recording(file)
        return self._rejudging.judged(recording, self.kind(recording.sku, file))

    def kind(self, sku: str, file: Path) -> RecordedMachineKind:
        """Return the SKU and its limits. Raises `UsageError` naming the file."""
        if sku in self._kinds:
            return self._kinds[sku]
        if self._site is not None:
            remedy = f"the site's are {', '.join(sorted(self._kinds))}"
            raise UsageError(f"the site has no SKU {sku!r}", where=f"{file}: sku", remedy=remedy)
        try:
            (found,) = read_skus(self._folder, (sku,), parse_yaml(f"skus: [{sku!r}]", str(file)))
        except UsageError as error:
            raise UsageError(error.message, where=f"{file}: sku", remedy=error.remedy) from error
        self._kinds[sku] = RecordedMachineKind(found, shipped_limits(found.limits))
        return self._kinds[sku]

    def _suite(self) -> Suite:
        return contents.suite(self._site) if self._site is not None else shipped_suite()

    def _recording(self, file: Path) -> Recording:
        node = file.stem if file.stem != "recording" else file.parent.name
        with as_usage():
            return parse_recording(content(file), where=str(file), owner=partial(self._owner, node))

    def _owner(self, node: str) -> Mapping[str, object]:
        """Return what the journal knows of the node that a bare answer is from."""
        if self._site is None:
            remedy = "name the site that knows it (--site)"
            raise UsageError("holds a node's answer without the node's name", where=f"{node}.json", remedy=remedy)
        from clusterctl.operations.context import open_site  # here, not above: it imports the database

        state = open_site(self._folder).node(node)
        inventory = {} if state.inventory is None else {"inventory": inventory_to_data(state.inventory)}
        return {"version": 1, "node": node, "serial": state.serial or "", "sku": state.sku, **inventory}


_judges: list[Judge] = []
"""The one of a process of the pool, inherited from the process that it was forked from."""


def _begin(judge: Judge) -> None:
    gc.disable()
    _judges.append(judge)


def _judged(file: Path) -> JudgedRecording:
    return _judges[-1].judged(file)
