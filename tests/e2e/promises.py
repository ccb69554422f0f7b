"""What must hold at the end of a fault-free rehearsal, however often its controller was killed: in words, if not."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing

from clusterctl.fleet.event import Kind
from clusterctl.fleet.node import Step
from tests.e2e.site_kit import Site
from tests.events import data_of
from tests.processes import mentioning

STOPS = (Kind.NODE_HELD, Kind.NODE_QUARANTINED)
NOT_ASKED = frozenset({("burnin", "dns"), ("burnin", "host_network"), ("burnin", "zpool")})
"""What the lab's site does not ask: its hosts have no name server, nothing is set for their network, no pool is wanted."""


def broken_promises(site: Site, nodes: int) -> list[str]:
    """Nothing when all hold."""
    return [
        *_not_gold(site, nodes),
        *_findings(site),
        *_installs(site, nodes),
        *unfolded(site),
        *_claims(site),
        *_pool(site),
        *_left(site),
    ]


def _not_gold(site: Site, nodes: int) -> Iterator[str]:
    states = site.states()
    if len(states) != nodes:
        yield f"{len(states)} nodes are known, there are {nodes}"
    for state in states:
        if state.stage.value != "gold":
            yield f"{state.name} is {state.stage.value}: {state.cause}"
        missing = {step.value for step in Step} - set(state.reports)
        if missing:
            yield f"{state.name} has no report of {sorted(missing)}"


def _findings(site: Site) -> Iterator[str]:
    """Over all runs: a sound node was never suspected, not even for a moment."""
    for event in site.events():
        if event.kind in STOPS:
            yield f"{event.subject}: {event.kind.value}: {data_of(event)['cause']}"
        if event.kind is Kind.REPORT_RECORDED:
            report = data_of(event)["report"]
            for finding in report["findings"]:
                asked = (report["step"], finding["check"]) not in NOT_ASKED
                if finding["verdict"] != ("pass" if asked else "not_applicable"):
                    yield f"{event.subject}: {report['step']}: {finding['check']} {finding['verdict']}: {finding['cause']}"


def _installs(site: Site, nodes: int) -> Iterator[str]:
    machines = json.loads(site.lab("status", "--json"))["machines"]
    if len(machines) != nodes:
        yield f"the lab has {len(machines)} machines, not {nodes}"
    for machine in machines:
        if machine["installs"] != 1:
            yield f"the OS of {machine['name']} was written {machine['installs']} times"


def unfolded(site: Site) -> Iterator[str]:
    """The stored states are the fold of the events: written again, they stay the same."""
    before = _rows(site, "SELECT * FROM node_state ORDER BY node")
    with site.journal() as journal:
        journal.rebuild()
    for was, now in zip(before, _rows(site, "SELECT * FROM node_state ORDER BY node"), strict=True):
        if was != now:
            yield f"the stored state is not the fold: {was} becomes {now}"


def _claims(site: Site) -> Iterator[str]:
    for row in _rows(site, "SELECT node, run FROM claim WHERE run <> ''"):
        yield f"a claim was left: {row}"


def _pool(site: Site) -> Iterator[str]:
    """Also when a run was killed between the last gold node and the pool's publication."""
    published = [node["name"] for node in json.loads((site.folder / "gold.json").read_text())["gold"]]
    if published != [state.name for state in site.states()]:
        yield f"the pool lists {published}"


def _left(site: Site) -> Iterator[str]:
    for process in mentioning(str(site.folder)):
        yield f"process {process.pid} still works on the site: {process.command}"
    for path in (site.folder / "state/ansible").iterdir():
        yield f"a run directory was left: {path}"


def _rows(site: Site, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(site.journal_file)) as connection:
        return connection.execute(query).fetchall()
