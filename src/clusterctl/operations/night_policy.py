"""What the site spares for its nights, and whether a night could ever work with it: reported before the first night."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from clusterctl.edges.site import Site
from clusterctl.fleet.diagnosis import Diagnosis, ok, warn
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.nightly.policy import NightPolicy, require_affordable
from clusterctl.fleet.nightly.window import parse_window
from clusterctl.fleet.node import Stage
from clusterctl.fleet.state import NodeSummary
from clusterctl.site.scheduling import NightlySettings, zone_named

NAME = "nightly_budget"


def policy_of(site: Site, settings: NightlySettings, percent: int | None = None) -> NightPolicy:
    """Return the site's policy; `percent` of the command line replaces the site's."""
    return NightPolicy(
        percent=percent or settings.percent,
        most=settings.most,
        node=timedelta(minutes=settings.node_minutes),
        attempts=site.settings.limits.attempts,
        expiry=timedelta(days=settings.expiry_days),
    )


def in_service(nodes: Iterable[NodeSummary]) -> int:
    """Return the number of nodes that may become gold."""
    return sum(node.stage is not Stage.RETIRED for node in nodes)


def nightly_problem(site: Site, nodes: int) -> UsageError | None:
    """Return why no night works, although all of so many nodes are gold; None where nights work, or are not planned."""
    settings = site.settings.nightly
    if settings is None or nodes == 0:
        return None
    try:
        window = parse_window(settings.window, zone_named(settings.time_zone), where=site.where("nightly", "window"))
        require_affordable(policy_of(site, settings), nodes, window.usual)
    except UsageError as error:
        return error
    return None


def diagnosis(site: Site) -> Diagnosis:
    """Return the diagnosis of `doctor`, by the nodes of the site's files."""
    if site.settings.nightly is None:
        return ok(NAME, "the site has no nightly burn-in")
    problem = nightly_problem(site, len(site.nodes))
    if problem is None:
        return ok(NAME, f"nights keep the evidence of {len(site.nodes)} gold nodes young enough")
    return warn(NAME, f"no night will test a node: {problem.message}", problem.remedy)
