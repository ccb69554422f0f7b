"""`kill -9` at random moments of a bootstrap, thirty times or `SOAK_KILLS`: the next run goes on, nothing is twice."""

from __future__ import annotations

import os
import random
import subprocess
from collections import Counter

import pytest

from tests.e2e.promises import broken_promises
from tests.e2e.site_kit import RUN_S, Controller, Site
from tests.lab.lab_kit import eventually, needs_lab, running_lab

pytestmark = [pytest.mark.soak, pytest.mark.lab, needs_lab, pytest.mark.timeout(0)]

SEED = 20260101
KILLS = int(os.environ.get("SOAK_KILLS", "30"))
KILLS_A_LIFE = 5
HOSTS = 3
MOST_EVENTS = 25
PAUSES_S = (0.0, 1.0, 8.0)
"""At once, soon, or well within the long acts (install, Ansible, loads)."""
ORPHANS_S = 30.0


def last_event(site: Site) -> int:
    return max((state.last_seq for state in site.states()), default=0)


def killed_at(site: Site, run: Controller, events: int, pause_s: float) -> bool:
    """Kill the run once it has written `events` and worked `pause_s` more; False where it ended before."""
    goal = last_event(site) + events
    if not eventually(lambda: run.ended or last_event(site) >= goal, RUN_S):
        raise AssertionError(f"it hangs before event {goal}: {run.stderr}")
    try:
        run.wait(pause_s)
    except subprocess.TimeoutExpired:
        family = run.family()
        run.kill()
        assert eventually(lambda: not [each for each in family if each.lives], ORPHANS_S), family
        return True
    return False


def life(site: Site, number: int, kills: int) -> tuple[int, list[str]]:
    """One lab from nothing to gold, killed up to `kills` times on the way: how often it was, and what did not hold."""
    rng = random.Random(SEED + number)
    done = 0
    while done < kills:
        events, pause_s = rng.randint(1, MOST_EVENTS), rng.uniform(0.0, rng.choice(PAUSES_S))
        with site.start("bootstrap", "--yes") as run:
            if not killed_at(site, run, events, pause_s):
                break
        done += 1
        stood = Counter(state.stage.value for state in site.states())
        where = ", ".join(f"{count} {stage}" for stage, count in sorted(stood.items()))
        print(
            f"life {number}, kill {done}: {events} events and {pause_s:.1f} s into the run; nodes: {where}", flush=True
        )
    last = site.run("bootstrap", "--yes")
    broken = [] if last.wait() == 0 else [f"exit code {last.wait()}: {last.stderr}{last.stdout}"]
    broken += broken_promises(site, HOSTS)
    print(f"life {number}: {'; '.join(broken) or 'all promises kept'}", flush=True)
    return done, broken


def test_kills_at_random_moments(tmp_path_factory: pytest.TempPathFactory) -> None:
    """After each life all nodes are gold, none was ever suspected, each OS was written once, nothing is left behind."""
    kills, number, broken = 0, 0, []
    print(f"\nseed {SEED}: at least {KILLS} kills, at most {KILLS_A_LIFE} before a bootstrap of {HOSTS} nodes may end")
    while kills < KILLS:
        number += 1
        folder = tmp_path_factory.mktemp("s")
        with running_lab("soak", "10.157.0.0/16", folder, "--hosts", str(HOSTS)) as lab:
            done, wrong = life(Site(lab, folder / "runs"), number, min(KILLS_A_LIFE, KILLS - kills))
        assert done > 0, "a bootstrap ended before it could be killed"
        kills += done
        broken += wrong
    print(f"{kills} kills in {number} lives, {len(broken)} promises broken")
    assert not broken
