"""What follows for a host whose hardware is proven to blame: the site's rule, its budgets, and one order for each drain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clusterctl.operations import detached
from clusterctl.operations.context import SiteContext
from clusterctl.operations.job_suspects import COMMAND, FollowUp, decide, revalidate
from clusterctl.operations.revalidate import RevalidateRequest
from clusterctl.operations.runs import RunRecord
from tests.edges.slurm.job_site import job_site
from tests.operations.written_orders import written_order

DRAIN = "clusterctl:job:run-1"


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SiteContext]:
    with job_site(tmp_path) as site:
        yield site.context


def with_rule(context: SiteContext, **changes: Any) -> SiteContext:
    settings = context.site.settings
    jobs = replace(settings.jobs, **changes)
    return replace(context, site=replace(context.site, settings=replace(settings, jobs=jobs)))


@pytest.mark.parametrize("rule", ["drain", "quarantine"])
def test_without_the_sites_order_nothing_is_revalidated(context: SiteContext, rule: str) -> None:
    assert decide(context, "c1").follow_up is FollowUp.DRAIN
    assert decide(with_rule(context, proven_fault=rule), "c1").follow_up is FollowUp(rule)


def test_a_host_is_revalidated_once_then_quarantined(context: SiteContext) -> None:
    """It passed, and a second job blames it: a burn-in does not find its fault."""
    site = with_rule(context, proven_fault="revalidate", revalidations_a_day=5)
    assert decide(site, "c1").follow_up is FollowUp.REVALIDATE
    ordered = revalidate(site, "c1", "job 7: GPU lost", DRAIN, written_order)
    assert (ordered.operation, ordered.command) == ("revalidate", COMMAND)
    assert (ordered.request["nodes"], ordered.request["lifts"]) == (["c1"], DRAIN)
    again = decide(site, "c1")
    assert (again.follow_up, bool(again.because)) == (FollowUp.QUARANTINE, True)
    assert decide(site, "c2").follow_up is FollowUp.REVALIDATE


def test_the_days_budget_holds_over_all_hosts(context: SiteContext) -> None:
    """Beyond it a host stays drained: a wave of failures must not burn in the whole pool."""
    site = with_rule(context, proven_fault="revalidate", revalidations_a_day=1)
    revalidate(site, "c1", "job 7: GPU lost", DRAIN, written_order)
    second = decide(site, "c2")
    assert (second.follow_up, "jobs.revalidations_a_day" in second.because) == (FollowUp.DRAIN, True)


def test_revalidations_of_operators_use_no_budget(context: SiteContext) -> None:
    site = with_rule(context, proven_fault="revalidate", revalidations_a_day=1)
    written_order(site, RevalidateRequest(nodes=("c1",), reason="looked at"), detached.Origin(command="revalidate"))
    assert decide(site, "c1").follow_up is FollowUp.REVALIDATE


def test_a_killed_watcher_orders_it_once(context: SiteContext) -> None:
    """The order's key is the drain and the host: `detached.order` returns the run that it made before."""
    keys: list[str] = []

    def order(site: SiteContext, request: RevalidateRequest, origin: detached.Origin) -> RunRecord:
        keys.append(origin.key)
        return written_order(site, request, origin)

    for _ in range(2):
        revalidate(context, "c1", "job 7", DRAIN, order)
    assert keys == [f"{DRAIN}:c1"] * 2
