"""`cable burn` on lab hosts, killed at random moments: the same coverage, no stage lost, no port left busy.

Bytes run between the hosts over TCP; the counters of the ports are played by the lab. CLUSTERCTL_BURN_KILLS is the number
of kills, CLUSTERCTL_BURN_SEED chooses their moments.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from clusterctl.fleet.event import Kind, Stream
from clusterctl.operations.context import open_site
from lab.tests.lab_kit import eventually, needs_lab, running_lab
from tests.e2e.site_kit import Controller, Site
from tests.events import data_of, new_event

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab, pytest.mark.timeout(0)]

HOSTS = 6
RAILS = 2
"""That are loaded, of eight."""
KILLS = int(os.environ.get("CLUSTERCTL_BURN_KILLS", "5"))
SEED = int(os.environ.get("CLUSTERCTL_BURN_SEED", "1"))
STAGE_S = 30
LONGEST_S = 60.0
"""A kill comes by then: in the first stage, between two stages, or in the second one."""
BURN = ("cable", "burn", "node0*", "--scope", "rail:0,1", "--stage", f"{STAGE_S}s", "--yes")
QUIET_S = 120.0
"""On a crowded machine; a host's own supervisor ends a flow whose controller is gone."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Hosts that run, known to the journal as a run would have left them."""
    folder = tmp_path_factory.mktemp("b")
    sizes = ("--hosts", str(HOSTS), "--installed")
    with running_lab("burnk", "10.147.0.0/16", folder, *sizes) as lab:
        found = Site(lab, folder / "runs")
        discovered = found.run("discover", "--yes")
        assert discovered.wait() == 0, discovered.stderr
        known = dict(line.split(" ", 1) for line in (lab.site / "known_hosts").read_text().splitlines())
        context = open_site(lab.site)
        for node in context.journal.summaries():
            address = lab.machine(node.name)["address"]
            events = [(Kind.NODE_ADDRESSED, {"address": address}), (Kind.HOST_KEY_PINNED, {"public": known[address]})]
            context.journal.append([new_event("node", node.id, kind, data) for kind, data in events])
        context.journal.close()
        yield found


def flows(site: Site) -> int:
    """Processes of perftest on all hosts."""
    names = [f"node{number:03d}" for number in range(1, HOSTS + 1)]
    return sum(int(site.lab.ssh(name, "pgrep -c ib_write_b[w] || true").strip() or 0) for name in names)


def measured(site: Site) -> list[str]:
    """The stages of the burn that the journal has, by their readings."""
    with site.journal() as journal:
        burns = [event.subject for event in journal.latest(Stream.CAMPAIGN, Kind.BURN_STARTED)]
        events = [event for burn in burns for event in journal.history(Stream.CAMPAIGN, burn)]
    return [f"{event.subject} {data_of(event)}" for event in events if event.kind is Kind.BURN_STAGE_MEASURED]


def _quiet(site: Site) -> bool:
    return flows(site) == 0


def _due(run: Controller, until: float) -> bool:
    """Whether the run has ended, or is to be killed."""
    return run.ended or time.monotonic() > until


def test_a_burn_that_is_killed_at_random_loads_every_link_and_leaves_no_port_busy(site: Site) -> None:
    """What was measured before a kill counts in the end, no stage is measured twice, and the coverage is that of a burn
    that nothing interrupts.
    """
    chance = random.Random(SEED)
    kept: list[str] = []
    kills = 0
    while kills < KILLS:
        after = chance.uniform(5.0, LONGEST_S)
        with site.start(*BURN) as run:
            until = time.monotonic() + after
            assert eventually(partial(_due, run, until), after + 60)
            kills += not run.ended
            how = "ended before the kill" if run.ended else f"kill {kills} after {after:.0f} s"
        now = measured(site)
        assert now[: len(kept)] == kept, "a stage is lost"
        kept = now
        assert eventually(partial(_quiet, site), QUIET_S), "a port is busy"
        print(f"{how}: {len(kept)} stages measured", flush=True)
    killed = burned(site)
    assert measured(site)[: len(kept)] == kept
    whole = burned(site)
    print(f"killed {KILLS} times: {killed}", f"not killed: {whole}", sep="\n", flush=True)
    assert killed == whole
    assert whole["loaded"] == whole["directions"] - len(whole["unproven"]) > 2 * HOSTS * RAILS
    assert flows(site) == 0


def burned(site: Site) -> dict[str, Any]:
    """Carry the burn to its end, and return what it has covered."""
    run = site.run(*BURN, "--json")
    answer = json.loads(run.stdout)
    assert answer["stopped"] == "", run.stderr
    return {name: answer[name] for name in ("hosts", "stages", "directions", "loaded", "unproven")}
