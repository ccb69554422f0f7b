"""`clusterctl revalidate`, as an operator types it: what is ordered, which nodes are lent for it, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.fleet.decisions.revalidate import order_event
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.node import RevalidationOrigin, Stage, Step
from clusterctl.fleet.state import Revalidation
from clusterctl.operations import revalidate
from clusterctl.operations.context import Invocation, SiteContext, open_site
from clusterctl.operations.operation import Control
from clusterctl.operations.revalidate import RevalidateRequest
from tests.cli.nights import SETTINGS, FakeScheduler, SilentOutside, write
from tests.cli.site_of_three import append, run, seq
from tests.events import advances, data_of, new_event

NO_SCHEDULER = "\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write(tmp_path)


def revalidated(context: SiteContext, scheduler: FakeScheduler, *parts: str, node: str = "n1") -> int:
    silent = replace(context, connect=lambda site, _access: SilentOutside(site, scheduler=scheduler))
    return revalidate.run(silent, RevalidateRequest(nodes=(node,), parts=parts), Control()).exit_code


def test_partners_are_lent_and_given_back_the_node_only_once_it_is_gold(site: Path) -> None:
    """No host answers here, so it is stopped: it stays out of work, with our reason; its partners have theirs again."""
    context, scheduler = open_site(site), FakeScheduler()
    assert revalidated(context, scheduler) == 1
    assert scheduler.calls[0] == ("take", ("n2", "n3", "n4"))
    assert scheduler.reasons == {"n1": f"clusterctl:revalidate:{context.run}"}
    assert context.node("n1").stopped_at is Step.BURNIN
    assert all(context.node(name).stage is Stage.GOLD for name in ("n2", "n3", "n4"))


@pytest.mark.parametrize(("came_to", "exit_code"), [(Stage.CABLED, 1), (Stage.GOLD, 0)])
def test_a_run_that_is_begun_again_orders_no_node_twice(site: Path, came_to: Stage, exit_code: int) -> None:
    """Its worker was lost during the burn-in, or after it: the node goes on where it stands, and no other gold node is
    idle, since the partners are still lent.
    """
    context, reason = open_site(site, Invocation("ann", "revalidate", "r-1")), "clusterctl:revalidate:r-1"
    node = context.node("n1")
    order = order_event(node, Step.BURNIN, Revalidation(RevalidationOrigin.OPERATOR, "a cable was moved"))
    context.journal.append([order, *advances(node.id, came_to, Stage.CABLED)])
    scheduler = FakeScheduler(reasons=dict.fromkeys(("n1", "n2", "n3", "n4"), reason))
    assert revalidated(context, scheduler) == exit_code
    kinds = [event.kind for event in context.journal.history(Stream.NODE, node.id)]
    assert kinds.count(Kind.REVALIDATION_ORDERED) == 1
    assert scheduler.reasons == ({} if came_to is Stage.GOLD else {"n1": reason})


def test_several_nodes_are_ordered_together(site: Path) -> None:
    """All orders are sound, or none is written; no node of them is a partner of another."""
    result = run(site, "revalidate", "n1", "n2", "--repaired", "gpu3", "--dry-run").stdout
    assert [line.partition(":")[0] for line in result.splitlines() if "measured with n3, n4" in line] == ["n1", "n2"]
    before = seq(site)
    with pytest.raises(UsageError, match="a job runs on it"):
        revalidated(open_site(site), FakeScheduler(busy={"n2"}), node="n[12]")
    assert seq(site) == before
    context, scheduler = open_site(site), FakeScheduler()
    assert revalidated(context, scheduler, node="n[12]") == 1
    assert set(scheduler.reasons) == {"n1", "n2"}
    assert [context.node(name).stopped_at for name in ("n1", "n2")] == [Step.BURNIN, Step.BURNIN]


def test_a_node_with_jobs_is_not_revalidated(site: Path) -> None:
    """No node with jobs is lent either."""
    before = seq(site)
    with pytest.raises(UsageError, match="a job runs on it: the scheduler reports allocated"):
        revalidated(open_site(site), FakeScheduler(busy={"n1"}))
    with pytest.raises(UsageError, match="no gold node is known to be idle"):
        revalidated(open_site(site), FakeScheduler(busy={"n2", "n3", "n4"}))
    scheduler = FakeScheduler(gets_work={"n2", "n3", "n4"})
    with pytest.raises(EdgeError, match="jobs began on its partners"):
        revalidated(open_site(site), scheduler)
    assert scheduler.reasons == {}
    assert seq(site) == before


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("revalidate", "n9"), "n9"),
        (("revalidate", "n1", "--repaired", "board"), "another machine"),
        (("revalidate", "n1", "--repaired", "gpu3,flux"), "has no part 'flux'"),
        (("revalidate", "n1", "--reason", "…"), "your own words"),
    ],
)
def test_what_is_refused(site: Path, words: tuple[str, ...], expected: str) -> None:
    """In words, with a remedy, and nothing is written."""
    before = seq(site)
    with pytest.raises(UsageError, match=expected) as caught:
        run(site, *words, "--yes")
    assert caught.value.remedy
    assert seq(site) == before


def test_without_a_scheduler_a_person_answers_for_idleness(site: Path) -> None:
    """For the node, and for its partners."""
    text = (site / "site.yml").read_text().replace(SETTINGS, NO_SCHEDULER)
    (site / "site.yml").write_text(text)
    with pytest.raises(UsageError, match="pass --from-pool") as caught:
        run(site, "revalidate", "n1", "--yes")
    assert caught.value.where == "n1"
    with pytest.raises(UsageError, match="no gold node is known to be idle"):
        run(site, "revalidate", "n1", "--from-pool", "--yes")
    result = run(site, "revalidate", "n1", "--from-pool", "--partner", "n2", "--dry-run").stdout
    assert "measured with n2" in result


def test_a_dry_run_prints_what_would_be_proven_again(site: Path) -> None:
    """The report names the partners as well."""
    before = seq(site)
    result = run(site, "revalidate", "n1", "--repaired", "gpu3,cable 5", "--dry-run").stdout
    assert "gpu3, cable 5 repaired, and the chassis was open: revalidated by discover, install, configure" in result
    assert "it leaves the gold pool; measured with n2, n3, n4" in result
    assert seq(site) == before


@pytest.mark.parametrize(
    ("reason", "parts", "lifted"),
    [
        ("clusterctl:job:run-1", ("gpu3",), True),
        ("clusterctl:gpu_ecc:20260102T030405Z", ("gpu3",), True),
        ("clusterctl:job:run-1", (), False),
        ("clusterctl: ada looks at it", ("gpu3",), False),
        ("ada looks at it", ("gpu3",), False),
    ],
)
def test_a_reported_repair_lifts_the_drain_for_the_fault(
    site: Path, reason: str, parts: tuple[str, ...], lifted: bool
) -> None:
    """The preview names the drain. Where nothing was repaired, or an operator drained the node, that stays."""
    context, scheduler = open_site(site), FakeScheduler(reasons={"n1": reason})
    silent = replace(context, connect=lambda site, _access: SilentOutside(site, scheduler=scheduler))
    (effect,) = revalidate.preview(silent, RevalidateRequest(nodes=("n1",), parts=parts)).effects
    assert (f"its drain {reason} is lifted" in effect.text) is lifted


def offends(site: Path, node: str, times: int) -> None:
    """Quarantined so often by its GPU 3 before it became gold."""
    stop = {"step": "burnin", "verdict": "fail", "remedy": "replace it", "cause": "2 errors"}
    event = new_event("node", f"id-{node}", Kind.NODE_QUARANTINED, {**stop, "check": "gpu_ecc", "subject": "gpu 3"})
    released = new_event("node", f"id-{node}", Kind.NODE_RELEASED, {"to": "cabled", "reason": "x"})
    append(site, [*[event] * times, released, *advances(f"id-{node}", Stage.GOLD, Stage.CABLED)])


def test_a_repeat_offender_is_proven_by_the_longer_suite(site: Path) -> None:
    """It is printed before anything is done, and stays in its history; a node that failed once has the site's suite."""
    offends(site, "n1", 2)
    offends(site, "n2", 1)
    result = run(site, "revalidate", "n1", "--dry-run").stdout
    assert "by the suite revalidate instead of bootstrap, since quarantined 2 times in 28 days" in result
    assert "suite" not in run(site, "revalidate", "n2", "--dry-run").stdout
    context = open_site(site)
    assert revalidated(context, FakeScheduler()) == 1
    (order,) = (e for e in context.journal.history(Stream.NODE, "id-n1") if e.kind is Kind.REVALIDATION_ORDERED)
    assert "by the suite revalidate instead of bootstrap" in data_of(order)["reason"]


def test_a_person_or_the_site_may_name_another_suite_for_offenders(site: Path) -> None:
    """An operator's choice counts first; a site that names one suite for both has one."""
    offends(site, "n1", 2)
    assert "suite" not in run(site, "revalidate", "n1", "--suite", "hunt", "--dry-run").stdout
    with (site / "site.yml").open("a") as file:
        file.write("offenders: {suite: hunt}\n")
    assert "by the suite hunt instead of bootstrap" in run(site, "revalidate", "n1", "--dry-run").stdout
    text = (site / "site.yml").read_text()
    (site / "site.yml").write_text(text.replace("offenders: {suite: hunt}", "offenders: {suite: bootstrap}"))
    assert "suite" not in run(site, "revalidate", "n1", "--dry-run").stdout


def test_the_longer_suite_must_fit_into_the_deadline(site: Path) -> None:
    """Else it is refused before the node leaves the pool, with what to allow."""
    offends(site, "n1", 2)
    with (site / "site.yml").open("a") as file:
        file.write("suite: {pair_seconds: 1200}\n")  # the loads of bootstrap take 6150 s, of 7200 s
    before = seq(site)
    with pytest.raises(UsageError, match="the loads of the suite revalidate take 7860 s"):
        run(site, "revalidate", "n1", "--yes")
    assert seq(site) == before
