"""Every fault that the lab knows, in one lab: each is found, named with its part and remedy, and never gold.

It takes long (`make fault-table`, `make soak`). Faults that only loads find which the suite bootstrap leaves out are
played last, with data/every_load.yml. CLUSTERCTL_FAULTS names those that are wanted alone.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Verdict
from lab.tests.lab_kit import RunningLab, eventually, needs_lab, running_lab
from tests.e2e.fault_table import PAGE, Expectation, Row, expectations, page
from tests.e2e.site_kit import RUN_S, Controller, Site
from tests.events import data_of

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab, pytest.mark.timeout(0)]

BATCHES = 2
"""How many times each of the hosts that run is broken, found, repaired and released."""
HEALTHY = 4
"""Partners for hosts with loads that need a second host."""
DATA = Path(__file__).with_name("data")
CHOSEN = os.environ.get("CLUSTERCTL_FAULTS", "").split()
EXPECTED = tuple(each for each in expectations() if each.fault in CHOSEN or not CHOSEN)


@dataclass(frozen=True)
class Cast:
    """Who gets which fault: a node of its own for what is delivered broken or breaks during configure; those that run are
    used again in each batch.
    """

    delivered: dict[str, Expectation]
    configure: dict[str, Expectation]
    running: tuple[dict[str, Expectation], ...]
    sound: tuple[str, ...]

    @property
    def by_fault(self) -> dict[str, str]:
        """The nodes of what is delivered broken."""
        return {each.fault: node for node, each in self.delivered.items()}

    @property
    def hosts(self) -> int:
        return len({*self.delivered, *self.configure, *self.sound, *(node for batch in self.running for node in batch)})


def cast(expected: Sequence[Expectation]) -> Cast:
    names = (f"node{number:03d}" for number in range(1, 1000))
    paired = {name for each in expected if each.target.startswith("@") for name in (each.fault, each.target[1:])}
    ordered = sorted(expected, key=lambda each: each.fault not in paired)  # the first hosts share a rack
    when = {kind: [each for each in ordered if each.when == kind] for kind in ("delivered", "configure", "running")}
    alone = {kind: {next(names): each for each in when[kind]} for kind in ("delivered", "configure")}
    usual = [each for each in when["running"] if each.suite == "bootstrap"]
    others = [each for each in when["running"] if each.suite != "bootstrap"]
    size = max(-(-len(usual) // BATCHES), len(others))
    stages = [next(names) for _ in range(size)]
    batches = [*(usual[at : at + size] for at in range(0, len(usual), max(size, 1))), *([others] if others else [])]
    running = tuple(dict(zip(stages, batch, strict=False)) for batch in batches)
    return Cast(alone["delivered"], alone["configure"], running, tuple(next(names) for _ in range(HEALTHY)))


CAST = cast(EXPECTED)


@dataclass(frozen=True)
class Play:
    """The lab after all batches: what was found of each fault."""

    site: Site
    rows: dict[Expectation, Row]


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    folder = tmp_path_factory.mktemp("x")
    options = [f"--fault={each.fault}:{each.at(node, CAST.by_fault)}" for node, each in CAST.delivered.items()]
    with running_lab("e2ex", "10.156.0.0/16", folder, "--hosts", str(CAST.hosts), *options) as lab:
        site = Site(lab, folder / "runs")
        with site.start("bootstrap", "--until", "cable", "--yes") as run:
            for node, each in CAST.configure.items():
                assert eventually(partial(_configuring, site, node), RUN_S)
                lab("inject", each.fault, each.at(node, CAST.by_fault))
            _ended(run, stops=bool(CAST.delivered or CAST.configure))
        rows = _rows(site, CAST.delivered) | _rows(site, CAST.configure)
        for batch in CAST.running:
            _take_suite(lab, {each.suite for each in batch.values()})
            for node, each in batch.items():
                lab("inject", each.fault, each.at(node, CAST.by_fault))
            _ended(site.run("bootstrap", "--yes", *_partners(site)), stops=True)
            rows |= _rows(site, batch)
            for node in batch:
                lab("heal", node)
            stages = site.stages()
            found = [node for node in batch if stages[node] != "gold"]
            released = site.run("release", *found, "--reason", "the part was replaced", "--yes")
            assert released.wait() == 0, released.stderr
        yield Play(site, rows)


NETWORK = """\
network:
  rules:
    - ports:
        - {name: mgmt0, port: boot, address: dhcp, mtu: 1500}
"""
"""What the hosts of a lab have, but for the port's name."""


def _take_suite(lab: RunningLab, names: set[str]) -> None:
    """The shipped one is the site's as it stands."""
    for name in names - {"bootstrap"}:
        folder = lab.site / "suites"
        folder.mkdir(exist_ok=True)
        shutil.copy(DATA / f"{name}.yml", folder)
        with (lab.site / "site.yml").open("a") as site:
            site.write(f"burnin: {name}\nstorage: {{path: /mnt/datasets/sample, gbps: 10}}\n{NETWORK}")


def _ended(run: Controller, *, stops: bool) -> None:
    """Exit code 1 where some node is stopped, and nothing worse."""
    assert run.wait() == int(stops), run.stderr + run.stdout


def _partners(site: Site) -> list[str]:
    """The healthy ones are partners for a later batch by being named: gold nodes may be at work."""
    stages = site.stages()
    return [f"--partner={name}" for name in CAST.sound if stages[name] == "gold"]


def _rows(site: Site, broken: dict[str, Expectation]) -> dict[Expectation, Row]:
    return {each: Row(each, node, site.ask("why", node)["nodes"][0]) for node, each in broken.items()}


def _configuring(site: Site, name: str) -> bool:
    states = [state for state in site.states() if state.name == name]
    return any(act.act == "configure.play" for state in states for act in state.open_acts)


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda each: f"{each.fault}-{each.when}-{each.target}")
def test_it_is_found(play: Play, expected: Expectation) -> None:
    """At the right step, by the right check, on the right part, with what to do about it, and as the only root."""
    row = play.rows[expected]
    assert not list(row.wrong()), f"{row.node}: {list(row.wrong())}; {row.found}"


def test_no_other_node_is_suspected(play: Play) -> None:
    """All healthy nodes are gold, and nothing worse than a warning was ever found on them."""
    states = {state.name: state for state in play.site.states()}
    assert {name: states[name].stage.value for name in CAST.sound} == dict.fromkeys(CAST.sound, "gold")
    ids = {states[name].id for name in CAST.sound}
    suspicions = [
        f"{event.subject}: {finding['check']} {finding['subject']}: {finding['cause']}"
        for event in play.site.events()
        if event.subject in ids and event.kind is Kind.REPORT_RECORDED
        for finding in data_of(event)["report"]["findings"]
        if not Verdict(finding["verdict"]).admits
    ]
    assert not suspicions


def test_the_page(play: Play) -> None:
    """docs/reference/faults.md is written where `CLUSTERCTL_WRITE_PAGES` is set; each row has a cause and a remedy."""
    rows = play.rows.values()
    assert all(row.found.get("cause") and row.found.get("remedy") for row in rows)
    if os.environ.get("CLUSTERCTL_WRITE_PAGES"):
        PAGE.write_text(page(rows, PAGE.read_text()))
