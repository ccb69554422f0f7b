"""The restart of UFM: only where it is stale, only the active one, once, and read back, whatever ends the process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.ufm.service import UfmService
from clusterctl.fleet.acts import ActResult
from clusterctl.fleet.errors import ConflictError, EdgeError, OutcomeUnknownError, UsageError
from clusterctl.fleet.event import Stream
from clusterctl.fleet.fabric.alarms import ManagedLink
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.payloads.node import ActIntended, ActObserved
from clusterctl.operations.operation import Control, Result
from clusterctl.operations.ufm_restart import AGAIN, RestartRequest, UfmRestart
from clusterctl.ports import Deadline
from tests.fake_timer import FakeTimer
from tests.ufm.watch_world import Killed, Watched, fat_tree, watched

TREE = fat_tree(4, 2, 1)
WHOLE = tuple(ManagedLink(a=link.a, b=link.b) for link in TREE.links)
REQUEST = RestartRequest(reason="half-done firmware")


@dataclass
class Ufm:
    """A UFM that lost a leaf and finds it again `after` looks after a restart. `lost`: the restart's answer is lost."""

    after: int = 2
    stale: bool = True
    active: bool = True
    lost: bool = False
    refused: bool = False
    killed: bool = False
    restarts: int = 0
    looks: int = 0
    asked: list[str] = field(default_factory=list)

    def links(self, deadline: Deadline) -> Observed[tuple[ManagedLink, ...]]:
        deadline.check("reading")
        self.looks += bool(self.restarts)
        if self.restarts and self.looks == 1:
            raise EdgeError("UFM does not answer", where="ufm")
        return Observed(() if self.stale and self.looks < self.after + 1 else WHOLE)

    def is_active(self, deadline: Deadline) -> bool:
        deadline.check("asking")
        return self.active

    def restart(self, deadline: Deadline) -> None:
        deadline.check("restarting")
        if self.refused:
            raise EdgeError("exit status 1: Unit ufm-enterprise.service not found.", where="ssh")
        self.restarts += 1
        if self.killed:
            raise Killed
        if self.lost:
            raise OutcomeUnknownError("the connection was lost", where="ssh")


@pytest.fixture
def site(tmp_path: Path) -> Watched:
    return watched(tmp_path / "site", TREE)


def with_restart(site: Watched, ufm: Ufm, act: Callable[[UfmRestart], Any]) -> Any:
    """Do something in a process of its own."""
    context = site.opened()
    try:
        return act(UfmRestart(context, ufm, ufm, site.world.clock, FakeTimer()))
    finally:
        context.journal.close()


def restarted(site: Watched, ufm: Ufm) -> Result:
    def approved(one: UfmRestart) -> Result:
        return one.run(REQUEST, Control(one.preview(REQUEST).digest))

    found: Result = with_restart(site, ufm, approved)
    return found


def written(site: Watched) -> list[str]:
    context = site.opened()
    payloads = [event.payload for event in context.journal.history(Stream.FABRIC, "ufm")]
    context.journal.close()
    return [
        "intent" if isinstance(one, ActIntended) else one.result.value
        for one in payloads
        if isinstance(one, ActIntended | ActObserved)
    ]


def test_a_stale_ufm_is_restarted_once_and_read_back(site: Watched) -> None:
    """It does not answer at first, then lacks links, then has the fabric; a dry run restarts nothing."""
    ufm = Ufm()
    preview = with_restart(site, ufm, lambda one: one.preview(REQUEST))
    assert [effect.text for effect in preview.effects] == ["restart it: its model of the fabric is stale"]
    assert ufm.restarts == 0
    result = restarted(site, ufm)
    assert [outcome.text for outcome in result.outcomes] == ["restarted: its model is the fabric"]
    assert (ufm.restarts, result.exit_code, written(site)) == (1, 0, ["intent", ActResult.DONE.value])


def test_a_healthy_ufm_is_left_alone(site: Watched) -> None:
    """Nothing is asked of its host."""
    ufm = Ufm(stale=False)
    with pytest.raises(UsageError, match="no restart is needed"):
        restarted(site, ufm)
    assert (ufm.restarts, written(site)) == (0, [])


def test_not_twice_within_an_hour(site: Watched) -> None:
    """A UFM that stays stale is a failure, and what came of the restart unknown; the next restart is refused until the hour is over."""
    ufm = Ufm(after=10_000)
    result = restarted(site, ufm)
    assert "UFM's model of the fabric is stale" in str(result.outcomes[0].failure)
    assert (result.exit_code, written(site)) == (1, ["intent", ActResult.UNKNOWN.value])
    with pytest.raises(UsageError, match="was restarted at 2026-03-01 08:00 UTC"):
        restarted(site, ufm)
    site.world.clock.at += AGAIN + timedelta(seconds=1)
    restarted(site, ufm)
    assert ufm.restarts == 2


def test_a_standby_is_not_restarted(site: Watched) -> None:
    """Where the programs reach the standby, nothing is done, and the error names what to change."""
    ufm = Ufm(active=False)
    with pytest.raises(UsageError, match="does not run on the host") as caught:
        restarted(site, ufm)
    assert "virtual address" in caught.value.remedy
    assert (ufm.restarts, written(site)) == (0, [])


def test_a_killed_run_is_read_back_by_the_next_one(site: Watched) -> None:
    """The process ends while UFM restarts: the next run reports that, restarts nothing, and reads back."""
    ufm = Ufm(killed=True)
    with pytest.raises(Killed):
        restarted(site, ufm)
    assert written(site) == ["intent"]
    ufm.killed = False
    preview = with_restart(site, ufm, lambda one: one.preview(REQUEST))
    assert "no second restart" in preview.effects[0].text
    assert restarted(site, ufm).exit_code == 0
    assert (ufm.restarts, written(site)) == (1, ["intent", ActResult.DONE.value])


def test_a_lost_connection_is_read_back(site: Watched) -> None:
    """The restart took effect or not: UFM's model decides."""
    ufm = Ufm(lost=True)
    assert restarted(site, ufm).exit_code == 0
    assert (ufm.restarts, written(site)) == (1, ["intent", ActResult.DONE.value])


def test_a_refused_restart(site: Watched) -> None:
    """It is written as failed, and the next one waits for no hour."""
    ufm = Ufm(refused=True)
    with pytest.raises(EdgeError, match="not found"):
        restarted(site, ufm)
    assert written(site) == ["intent", ActResult.FAILED.value]
    ufm.refused = False
    assert restarted(site, ufm).exit_code == 0


def test_an_approval_holds_for_what_was_previewed(site: Watched) -> None:
    """Another reason is another request."""
    ufm = Ufm()
    preview = with_restart(site, ufm, lambda one: one.preview(REQUEST))
    other = RestartRequest(reason="another")
    with pytest.raises(ConflictError):
        with_restart(site, ufm, lambda one: one.run(other, Control(preview.digest)))
    assert ufm.restarts == 0


def test_the_programs_of_a_site(tmp_path: Path) -> None:
    """Exit status 0 is active and 3 is not, as of `systemctl is-active`; others are errors, and 255 of ssh is unknown."""

    def status(code: int) -> tuple[str, ...]:
        return ("sh", "-c", f"exit {code}")

    deadline = Deadline.after(600)
    assert UfmService(status(0), ()).is_active(deadline)
    assert not UfmService(status(3), ()).is_active(deadline)
    for code in (1, 255):
        with pytest.raises(EdgeError):
            UfmService(status(code), ()).is_active(deadline)
    UfmService((), status(0)).restart(deadline)
    with pytest.raises(OutcomeUnknownError):
        UfmService((), status(255)).restart(deadline)
    with pytest.raises(EdgeError, match="exit status 1"):
        UfmService((), status(1)).restart(deadline)
