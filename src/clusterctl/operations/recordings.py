"""Recordings of burn-ins as files: the program that asks a node, and the evidence of last burn-ins exported."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path

from clusterctl.edges.disk import named_path_explained, write_whole
from clusterctl.edges.site import contents, load_site
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Event, Stream
from clusterctl.fleet.fold import fold
from clusterctl.fleet.node import Step
from clusterctl.fleet.payloads.node import ReportRecorded
from clusterctl.fleet.selectors import matching
from clusterctl.fleet.state import NodeSummary
from clusterctl.operations.context import SiteContext
from clusterctl_burnin.probe import Probe
from clusterctl_burnin.recordings.export import Export, export
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.suites.suite import shipped_suite
from clusterctl_burnin.sweep import sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """`target`: the folder that is written, new or empty; `limit`: names and patterns of nodes, empty: all."""

    target: Path
    limit: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedNode:
    """One recording.

    probes    number of answers in it
    lost      pieces of evidence that the journal names and no longer has
    left_out  commands of evidence that no check reads, loads among them
    """

    name: str
    probes: int
    lost: int
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """The nodes that were written, and of the others why not."""

    folder: Path
    simulated: bool
    nodes: tuple[ExportedNode, ...]
    not_exported: Mapping[str, str]

    @property
    def exit_code(self) -> int:
        """0: all evidence of each node was written."""
        return 1 if self.not_exported or any(node.lost for node in self.nodes) else 0


def run_export(context: SiteContext, request: ExportRequest) -> ExportResult:
    """Write the raw evidence of each node's last burn-in to TARGET/NODE.json; only its owner may read the files."""
    nodes = {node.name: node for node in context.nodes()}
    chosen = sorted(matching(nodes, request.limit))
    probes = [probe for check in CHECKS.values() for probe in check.probes]
    _make_folder(request.target)
    written: list[ExportedNode] = []
    missing: dict[str, str] = {}
    for name in chosen:
        found = _last_burnin(context, nodes[name], probes)
        if isinstance(found, str):
            missing[name] = found
            continue
        recording, lost = found
        _write(request.target / f"{name}.json", json.dumps(recording.document, indent=1, ensure_ascii=False))
        written.append(ExportedNode(name=name, probes=recording.probes, lost=lost, left_out=recording.left_out))
    return ExportResult(
        folder=request.target,
        simulated=context.site.settings.simulated,
        nodes=tuple(written),
        not_exported=missing,
    )


def node_program(folder: Path) -> bytes:
    """Return the program that asks a node all that the checks of the site's suite read; without a site, the shipped
    suite's.
    """
    if not (folder / "site.yml").exists():
        return sweep(shipped_suite().checks).stdin
    site = load_site(folder)
    return sweep(contents.suite(site).checks, requirements=contents.host_requirements(site)).stdin


def write_node_program(folder: Path, target: Path) -> None:
    """Write the program to a new file."""
    program = node_program(folder)
    with named_path_explained("the program cannot be written", target):
        if target.exists():
            raise UsageError("is there already", where=str(target), remedy="remove it or name another file")
        write_whole(target, program, mode=0o644, over=False)


def _last_burnin(context: SiteContext, node: NodeSummary, probes: Iterable[Probe]) -> tuple[Export, int] | str:
    """Return the node's last burn-in, as the node stood then, and how many pieces of evidence are lost; or the reason
    why there is none.
    """
    events = list(context.journal.history(Stream.NODE, node.id))
    until_then = list(dropwhile(lambda event: not _is_burnin(event), reversed(events)))[::-1]
    if not until_then:
        return "no burn-in of it is recorded"
    then, digests = fold(until_then, node.id), dict.fromkeys(until_then[-1].evidence)
    evidence = context.evidence(digests)
    found = export(then, tuple(evidence.values()), probes)
    if found is None:
        return "its last burn-in brought no answer of any check's probes"
    return found, len(digests) - len(evidence)


def _is_burnin(event: Event) -> bool:
    return isinstance(event.payload, ReportRecorded) and event.payload.report.step == Step.BURNIN.value


def _make_folder(target: Path) -> None:
    """Make the folder. Raises `UsageError` where it holds files: recordings of two exports would be judged as one."""
    with named_path_explained("the folder cannot be made", target):
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(target.iterdir()):
            raise UsageError("is not empty", where=str(target), remedy="name a folder that is empty or not there yet")
        target.chmod(0o700)


def _write(file: Path, text: str) -> None:
    with named_path_explained("the recording cannot be written", file):
        write_whole(file, f"{text}\n".encode(), mode=0o600, over=False)
