"""A night takes idle gold nodes, burns them in and gives them back; a node that fails stays out and is reported."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site.night_record import read_record
from clusterctl.fleet.decisions.revalidate import order_event
from clusterctl.fleet.errors import ConflictError, EdgeError, EnvironmentBrokenError, UsageError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.nightly.policy import NightPolicy
from clusterctl.fleet.node import NodeId, RevalidationOrigin, Stage, Step
from clusterctl.fleet.state import Revalidation
from clusterctl.operations import night as nightly
from clusterctl.operations import runs
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.detached import needs
from clusterctl.operations.night import NIGHTLY, Night, NightRequest, NightRun
from clusterctl.operations.operation import Control
from clusterctl.operations.partners import PartnerLender
from clusterctl.ports import Deadline
from clusterctl.steps.executor.lease import sole_claim
from clusterctl_cli.commands.burnin_nightly import print_night
from tests.cli.nights import NAMES, SETTINGS, WINDOW, FakeScheduler, SilentOutside, write
from tests.cli.site_of_three import append, run, seq
from tests.events import advances, new_event

POLICY = NightPolicy(percent=50, node=timedelta(minutes=10), attempts=2, expiry=timedelta(days=14))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write(tmp_path)


def night(context: SiteContext, scheduler: FakeScheduler, *, hours: float = 3) -> Night:
    closes = CLOCK.now() + timedelta(hours=hours)
    return NightRun(
        PartnerLender(context, scheduler, NIGHTLY), SilentOutside(context.site), POLICY, closes, Control()
    ).run()


def stages(context: SiteContext) -> dict[str, tuple[Stage, str]]:
    return {node.name: (node.stage, node.stopped_at.value if node.stopped_at else "") for node in context.nodes()}


def test_a_node_that_fails_stays_out_and_half_of_the_pool_goes_on_working(site: Path) -> None:
    """Two of four are taken, both are silent: they are no longer gold, no longer published, drained with the check's
    name; as long as they are out no other node is taken.
    """
    context, scheduler = open_site(site), FakeScheduler()
    done = night(context, scheduler)
    assert done.tested == ["n1", "n2"]
    assert done.ended == "2 nodes are out already, 0 more are spared"
    assert {name for name, (stage, _) in stages(context).items() if stage is Stage.GOLD} == {"n3", "n4"}
    assert [stop for _, stop in stages(context).values()] == ["burnin", "burnin", "", ""]
    assert [node["name"] for node in json.loads((site / "gold.json").read_text())["gold"]] == ["n3", "n4"]
    last = context.node("n1").last_seq
    assert scheduler.reasons["n1"].endswith(f":{last}")
    assert scheduler.reasons.keys() == {"n1", "n2"}


def test_the_journal_has_the_order_before_anything_is_run(site: Path) -> None:
    """The record names the run of the night that ordered it."""
    context = open_site(site)
    night(context, FakeScheduler())
    kinds = [event.kind for event in context.journal.history(Stream.NODE, NodeId("id-n1"))]
    assert kinds.index(Kind.REVALIDATION_ORDERED) < kinds.index(Kind.STEP_STARTED)
    ordered = Revalidation(RevalidationOrigin.NIGHT, f"nightly {context.run}")
    assert context.node("n1").revalidation == ordered


def test_a_node_that_gets_work_meanwhile_is_passed_over(site: Path) -> None:
    """Its partner would be alone: it is given back untested, and both had their turn for tonight."""
    context, scheduler = open_site(site), FakeScheduler(gets_work={"n1", "n3", "n4"})
    done = night(context, scheduler)
    assert done.tested == []
    assert done.passed_over["n1"] == "it has work"
    assert done.passed_over["n2"] == "no partner was left to measure it with"
    assert scheduler.reasons == {}
    assert all(stage is Stage.GOLD for stage, _ in stages(context).values())


def test_a_node_that_another_run_holds_is_given_back(site: Path) -> None:
    """Nothing is written about it, nor about its partner; the others have their turn without it."""
    context, scheduler = open_site(site), FakeScheduler()
    other = open_site(site).journal.claim([NodeId("id-n1")], "20260101T000000-beef")
    assert other.granted
    done = night(context, scheduler)
    assert "20260101T000000-beef" in done.passed_over["n1"]
    assert done.tested == ["n2", "n3"]
    assert context.node("n1").stage is Stage.GOLD
    assert "n1" not in scheduler.reasons


def test_what_a_killed_night_left_is_finished_first(site: Path) -> None:
    """n3 was ordered and is drained still: it has its turn first, with an idle gold node as partner for that time.
    n4 was drained and never ordered: it is given back.
    """
    append(
        site,
        [
            order_event(
                open_site(site).node("n3"), Step.BURNIN, Revalidation(RevalidationOrigin.NIGHT, "another wording")
            )
        ],
    )
    reason = "clusterctl:nightly:r0"
    context, scheduler = open_site(site), FakeScheduler(reasons={"n3": reason, "n4": reason})
    done = night(context, scheduler)
    assert scheduler.calls[:3] == [("give_back", ("n4",)), ("take", ("n1",)), ("give_back", ("n1",))]
    assert done.tested[0] == "n3"
    assert context.node("n4").stage is Stage.GOLD
    assert context.node("n3").stopped_at is Step.BURNIN


@pytest.mark.parametrize("reason", ["nightly r0", "after the nightly job"])
def test_a_night_does_not_finish_a_revalidation_that_an_operator_ordered(site: Path, reason: str) -> None:
    """Whatever the reason's wording is."""
    by_operator = Revalidation(RevalidationOrigin.OPERATOR, reason)
    append(site, [order_event(open_site(site).node("n3"), Step.BURNIN, by_operator)])
    context, scheduler = open_site(site), FakeScheduler(reasons={"n3": "clusterctl:nightly:r0"})
    assert "n3" not in night(context, scheduler).tested
    assert context.node("n3").stage is Stage.CABLED


def test_a_node_that_is_gold_again_gets_its_work_back(site: Path) -> None:
    """n4 failed some night, was repaired and burned in by day. n3 is lent to a run that holds it: it stays where it is."""
    lent = open_site(site).journal.claim([NodeId("id-n3")], "20260101T000000-beef")
    assert lent.granted
    out = {"n3": "clusterctl:revalidate:20260101T000000-beef", "n4": "clusterctl:gpu_ecc:7"}
    scheduler = FakeScheduler(busy={"n1", "n2"}, reasons=dict(out))
    night(open_site(site), scheduler)
    assert scheduler.calls[0] == ("give_back", ("n4",))
    assert scheduler.reasons == {"n3": out["n3"]}


@pytest.mark.parametrize(
    "reason",
    [
        "clusterctl:gpu_ecc:20261128T181500Z",
        "clusterctl:job:run-20261128T120000-beef",
        "clusterctl: the fan is loud, ann",
        "clusterctl:fan: loud, ann",
    ],
)
def test_a_gold_node_that_is_drained_for_a_fault_stays_out(site: Path, reason: str) -> None:
    """The journal has it as gold still: its own check drained it, a supervised job, or a person by hand."""
    context, scheduler = open_site(site), FakeScheduler(busy={"n1", "n2", "n3"}, reasons={"n4": reason})
    night(context, scheduler)
    assert scheduler.reasons == {"n4": reason}
    assert PartnerLender(context, scheduler, NIGHTLY).give_back(["n4"]) == {"n4": "it is not ours"}


def test_nothing_is_begun_when_the_window_is_about_to_close(site: Path) -> None:
    """Not even what another night left."""
    context, scheduler = open_site(site), FakeScheduler()
    done = night(context, scheduler, hours=0.25)
    assert (done.tested, done.ended) == ([], "the window closes in 14 min, a turn may take 20 min")
    assert scheduler.calls == []


def test_a_held_gold_node_is_left_alone(site: Path) -> None:
    """It is in no pool."""
    append(site, [new_event("node", "id-n1", Kind.HOLD_SET, {"reason": "mine", "until": None})])
    done = night(open_site(site), FakeScheduler())
    assert "n1" not in done.tested
    assert "n1" not in done.passed_over


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", "the site has no nightly burn-in"),
        (f'\nnightly: {{window: "{WINDOW}", percent: 50, node_minutes: 10}}\n', "it is unknown which nodes are idle"),
        (SETTINGS.replace("percent: 50", "percent: 40"), "40 % of 4 gold nodes are 1"),
        (SETTINGS.replace("node_minutes: 10", "node_minutes: 900"), "one turn may take 2 × 900 min"),
        (
            SETTINGS.replace("10, expiry_days: 14", "700, expiry_days: 1"),
            "4 gold nodes / (1 turns a night × 2 nodes at a time) = 2",
        ),
        (SETTINGS.replace("node_minutes: 10", "node_minutes: 10, suite: nosuch"), "no suite is called"),
        (SETTINGS.replace('"n*"', '"x*"'), "no node matches"),
        (SETTINGS.replace(WINDOW, "0-5"), "is no window"),
        (SETTINGS.replace("percent: 50", "percent: 50, time_zone: Mars/Base"), "must be a time zone"),
    ],
    ids=("none", "idle", "percent", "minutes", "expiry", "suite", "nodes", "window", "zone"),
)
def test_what_cannot_be_is_refused_before_anything_is_touched(tmp_path: Path, settings: str, expected: str) -> None:
    """Exit code 2, with what to do."""
    site = write(tmp_path)
    before = seq(site)
    sound = (site / "site.yml").read_text()
    (site / "site.yml").write_text(sound.replace(SETTINGS, settings))
    with pytest.raises(UsageError, match=re.escape(expected)) as caught:
        run(site, "burnin", "nightly", "--yes")
    assert caught.value.remedy
    (site / "site.yml").write_text(sound)
    assert seq(site) == before


@dataclass(frozen=True, slots=True)
class _Scripted(NightRun):
    """n1 fails in its turn, and n2 cannot be measured without it; with a partner it passes."""

    turns: list[tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)

    def _turn(self, names: Sequence[str], night: Night, partners: Collection[str] = ()) -> None:
        self.turns.append((tuple(names), tuple(partners)))
        night.tested += names
        for name in names:
            self.context.journal.append(self._end(name, partners))

    def _end(self, name: str, partners: Collection[str]) -> list[NewEvent]:
        stop = {"step": "burnin", "cause": "seen", "remedy": "repair"}
        if name == "n1":
            return [new_event("node", "id-n1", Kind.NODE_QUARANTINED, {**stop, "verdict": "fail"})]
        if not partners:
            return [new_event("node", f"id-{name}", Kind.NODE_HELD, {**stop, "verdict": "inconclusive"})]
        return advances(f"id-{name}", Stage.GOLD, Stage.CABLED)


def test_a_healthy_node_with_a_failed_partner_is_measured_with_a_lent_one(site: Path) -> None:
    """It is no less gold for its partner's fault; the lent node has its work again."""
    context, scheduler, closes = open_site(site), FakeScheduler(), CLOCK.now() + timedelta(hours=3)
    lender = PartnerLender(context, scheduler, NIGHTLY)
    watch = _Scripted(lender, SilentOutside(context.site), POLICY, closes, Control())
    watch.run()
    assert watch.turns[:2] == [(("n1", "n2"), ()), (("n2",), ("n3",))]
    assert context.node("n2").stage is Stage.GOLD
    assert "n3" not in scheduler.reasons


class _Mute(FakeScheduler):
    """Looks once, and is gone."""

    def take(self, nodes: Sequence[str], reason: str, deadline: Deadline) -> Mapping[str, str]:
        raise EdgeError("exit status 1: Unable to contact slurm controller", where="scontrol", remedy="repair it")


def test_a_night_that_breaks_off_is_none(site: Path) -> None:
    """Exit code 3, so that no timer takes it for an end; the record has its beginning, and no end."""
    context = open_site(site)
    mute = replace(context, connect=lambda of, _access: SilentOutside(of, scheduler=_Mute()))
    with pytest.raises(EnvironmentBrokenError, match="Unable to contact") as caught:
        nightly.run(mute, NightRequest(), Control())
    assert (caught.value.exit_code, caught.value.where) == (3, "scontrol")
    record = read_record(site / "state")
    assert record is not None
    assert record.ended is None
    assert all(stage is Stage.GOLD for stage, _ in stages(open_site(site)).values())


def test_a_night_other_than_the_approved_one_does_not_begin(site: Path) -> None:
    """A node that was to be first has work now: the operator approves the new preview, or none."""
    scheduler = FakeScheduler()
    context = replace(open_site(site), connect=lambda of, _access: SilentOutside(of, scheduler=scheduler))
    approved = nightly.preview(context, NightRequest()).digest
    scheduler.busy.add("n1")
    before = seq(site)
    with pytest.raises(ConflictError):
        nightly.run(context, NightRequest(), Control(approved))
    assert (seq(site), scheduler.calls, read_record(site / "state")) == (before, [], None)


def test_a_second_night_is_refused_while_one_runs(site: Path) -> None:
    """Exit code 2, with the run that holds the night; nothing is taken."""
    other = open_site(site)
    with sole_claim(other.journal, nightly.CLAIM, "20260101T000000-beef"):
        with pytest.raises(UsageError, match="20260101T000000-beef"):
            run(site, "burnin", "nightly", "--yes")
        assert all(stage is Stage.GOLD for stage, _ in stages(open_site(site)).values())
    assert other.journal.claim([nightly.CLAIM], "another").granted


def test_outside_of_its_window_nothing_is_done(site: Path) -> None:
    """The error contains the time of the site."""
    now = CLOCK.now()
    window = f"{now + timedelta(hours=2):%H:%M}-{now + timedelta(hours=4):%H:%M}"
    before = seq(site)
    with pytest.raises(UsageError, match=r"it is \d\d:\d\d there, and the window is"):
        run(site, "burnin", "nightly", "--window", window, "--yes")
    assert seq(site) == before


def test_a_dry_run_lists_the_nodes_that_would_be_first(site: Path) -> None:
    """And touches nothing."""
    before = seq(site)
    result = run(site, "burnin", "nightly", "--dry-run").stdout
    assert [line.split(":")[0] for line in result.splitlines()[:2]] == ["n1", "n2"]
    assert "burn in first" in result
    result = json.loads(run(site, "burnin", "nightly", "--dry-run", "--json", "--budget", "100").stdout)
    assert [effect["node"] for effect in result["effects"]] == list(NAMES)
    assert seq(site) == before


def test_a_night_without_access_to_the_fabric_ends_and_claims_no_healthy_link(site: Path, capsys) -> None:
    """Its nodes are judged as ever; the links are inconclusive, in the text and as data."""
    context = replace(open_site(site), connect=lambda of, _access: SilentOutside(of, scheduler=FakeScheduler()))
    result = nightly.run(context, NightRequest(), Control())
    assert result.tested
    assert result.links is not None
    assert (result.links.verdict, result.links.links) == ("inconclusive", 0)
    print_night(result, as_json=False)
    assert "link health inconclusive: the fabric could not be read: no InfiniBand port" in capsys.readouterr().out
    print_night(result, as_json=True)
    links = json.loads(capsys.readouterr().out)["links"]
    assert (links["verdict"], links["proven"], links["causes"]) == ("inconclusive", 0, [])


def test_a_night_may_be_ordered_from_a_pool_of_workers(site: Path) -> None:
    """A timer on any controller: whatever nodes are idle when it begins, and the networks of all gold ones."""
    ordered = run(site, "burnin", "nightly", "--yes", "--queue", "pod3", "--detach", "--json")
    assert ordered.return_value == 0, ordered.exception
    record = runs.find(open_site(site), json.loads(ordered.stdout)["name"])
    assert (record.command, record.pool, record.approved) == ("burnin nightly", "pod3", "")
    assert record.needs == needs(open_site(site), NAMES) != ()
    with pytest.raises(UsageError, match="--queue"):
        run(site, "burnin", "nightly", "--yes", "--priority", "5")
