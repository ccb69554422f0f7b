"""`kill -9` at a hundred seams (or `SOAK_KILLS`) of bootstraps: the next run goes on, nothing is lost, twice or left."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lab.tests.lab_kit import needs_lab, running_lab
from tests.e2e.site_kit import Site
from tests.kills import catalogue
from tests.kills.catalogue import Entry
from tests.kills.diary import lines_of
from tests.kills.life import Life
from tests.kills.seams import Blow

pytestmark = [pytest.mark.soak, pytest.mark.lab, needs_lab, pytest.mark.timeout(0)]

SEED = 20260101
KILLS = int(os.environ.get("SOAK_KILLS", "100"))
KILLS_A_LIFE = 12
HOSTS = 3


@dataclass
class Campaign:
    """Lives one after the other, each in a lab of its own."""

    folder: Path
    lives: int = 0
    kills: int = 0
    broken: list[str] = field(default_factory=list)
    struck: Counter[str] = field(default_factory=Counter)

    def live(self, blows: Sequence[Blow]) -> Life:
        """One life; it reports each run."""
        self.lives += 1
        folder = self.folder / str(self.lives)
        with running_lab("soak", "10.157.0.0/16", folder, "--hosts", str(HOSTS)) as lab:
            life = Life(Site(lab, folder / "runs"), folder / "life")
            for run in life.live(blows, HOSTS):
                print(f"life {self.lives}, run {run.number}: {ending(run.blow, run.code)}", flush=True)
        print(f"life {self.lives}: {'; '.join(life.broken) or 'all promises kept'}", flush=True)
        self.kills += life.kills
        self.broken += life.broken
        self.struck.update(run.blow.seam.actor for run in life.runs if run.blow)
        return life


def ending(blow: Blow | None, code: int) -> str:
    """The seam, and at which passing of it or how late in it the kill came."""
    if blow is None:
        return f"ended by itself with exit code {code}"
    late = f", {blow.late_s:.1f} s into it" if blow.late_s else ""
    return f"killed {blow.seam} (passing {blow.nth}{late})"


def recorded(campaign: Campaign) -> Sequence[Entry]:
    """Return the seams that exist: those of an undisturbed first life."""
    entries = catalogue.recorded(lines_of(campaign.live(()).diary))
    print(f"{len(entries)} things are done, so there are {3 * len(entries)} seams", flush=True)
    return entries


def test_kills_at_seams(tmp_path_factory: pytest.TempPathFactory) -> None:
    """After each life all nodes are gold, none was ever suspected, each OS was written once, no event that was written
    is lost, nothing was done unintended or again without a look, and nothing is left behind.
    """
    print(f"\nseed {SEED}: at least {KILLS} kills, at most {KILLS_A_LIFE} before a bootstrap of {HOSTS} nodes may end")
    campaign = Campaign(tmp_path_factory.mktemp("s"))
    entries = recorded(campaign)
    rng = random.Random(SEED)
    while campaign.kills < KILLS:
        before = campaign.kills
        campaign.live(catalogue.blows(entries, rng, min(KILLS_A_LIFE, KILLS - before)))
        assert campaign.kills > before, "no run came to any of the seams"
    where = ", ".join(f"{count} in {actor}" for actor, count in sorted(campaign.struck.items()))
    print(f"{campaign.kills} kills in {campaign.lives} lives ({where}), {len(campaign.broken)} promises broken")
    assert not campaign.broken
