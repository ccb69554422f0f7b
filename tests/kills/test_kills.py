"""`kill -9` of the controller at seams of every step: the next run goes on, and nothing is lost, done twice or left."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lab.tests.lab_kit import needs_lab, running_lab
from tests.e2e.site_kit import Site
from tests.kills import catalogue
from tests.kills.catalogue import Entry
from tests.kills.diary import lines_of
from tests.kills.life import Life
from tests.kills.seams import Blow, Moment, Seam
from tests.kills.small_disks import SmallDisks, small_disks

pytestmark = [pytest.mark.lab, needs_lab, pytest.mark.timeout(3600)]

SEED = 20260108
HOSTS = 3
LATEST_S = 10.0
ANY = tuple(Moment)
PLACES: tuple[tuple[str, str, tuple[Moment, ...]], ...] = (
    ("run", "claim", ANY),
    ("discover", "append node.identified", ANY),
    ("install", "append act.intended install.start", (Moment.AFTER,)),
    ("install", "installer.", (Moment.AFTER,)),
    ("install", "append node.addressed", ANY),
    ("configure", "playbooks.run", (Moment.DURING,)),
    ("cable", "append fabric.", ANY),
    ("burnin", "shell.run", (Moment.DURING,)),
    ("run", "pool.publish", ANY),
)
"""One kill in each: actor, how what begins, and when. Which of those that fit is drawn."""


def drawn(entries: tuple[Entry, ...], rng: random.Random) -> list[Blow]:
    """A blow in each place. Those of an install come at its first passing: each leaves nodes for the next ones."""
    blows = []
    for actor, begins, moments in PLACES:
        fitting = [entry for entry in entries if entry.actor == actor and entry.what.startswith(begins)]
        blow = rng.choice(fitting).blow(rng, rng.choice(moments), LATEST_S)
        blows.append(replace(blow, nth=1) if actor == "install" else blow)
    return blows


def filling(disks: SmallDisks) -> list[Blow]:
    """The journal's disk full before an intent, and Ansible's before a play, which needs no room once hosts play it."""
    play = "playbooks.run configure.yml"
    return [
        Blow(Seam("install", "append act.intended install.start", Moment.BEFORE), fills=str(disks.journal)),
        Blow(Seam("configure", play, Moment.BEFORE), fills=str(disks.ansible)),
    ]


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """One life through all kills and full disks."""
    folder = tmp_path_factory.mktemp("k")
    with (
        running_lab("kills", "10.154.0.0/16", folder, "--hosts", str(HOSTS)) as lab,
        small_disks(lab.site) as disks,
    ):
        lived = Life(Site(lab, folder / "runs"), folder / "life", disks.make_room)
        blows = [*drawn(catalogue.shipped(), random.Random(SEED)), *filling(disks)]
        for run in lived.live(blows, HOSTS):
            print(f"run {run.number}: {run.code} {run.blow or 'not struck'}", flush=True)
        yield lived


def test_the_last_run_ends_as_if_nothing_had_been(life: Life) -> None:
    """Killed before, during or after intents, effects, results, claim, reports and publication, in every part of the way,
    and with no room for journal or Ansible, the next run goes on each time, and the last one takes all to gold.

    No node was ever suspected, every OS was written once, nothing was intended again without a look, nothing was done
    unintended, no event that was written is lost, stored states are the fold, and no claim, process, session, run
    directory or file with a secret is left.
    """
    assert not life.broken, "\n".join(life.broken)


def test_every_blow_was_struck(life: Life) -> None:
    """Nine kills and two full disks; every seam of the recorded run was passed by some run, and no other."""
    assert life.kills == len(PLACES)
    assert sum(run.blow is not None for run in life.runs) == len(PLACES) + 2
    passed = {entry.seam(Moment.BEFORE) for entry in catalogue.recorded(lines_of(life.diary))}
    recorded = {entry.seam(Moment.BEFORE) for entry in catalogue.shipped()}
    assert passed >= recorded, "record the seams again: see tests/kills/README.md"


def test_a_full_disk_is_reported_in_one_sentence(life: Life) -> None:
    """What, where and what to do; no stack, and no host is blamed."""
    for run in life.runs:
        if run.blow is not None and run.blow.fills:
            (line,) = [line for line in run.output.splitlines() if line.startswith("error:")]
            assert run.blow.fills in line
            assert "full" in line or "No space left on device" in line
            assert "make room on that disk, then run the same command again" in line
