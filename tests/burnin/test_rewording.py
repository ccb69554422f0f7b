"""No verdict, root, figure or decision depends on wording: each cause and remedy is replaced and all is judged again.

Findings are reworded where one part of the product passes them to another: from the checks to root-cause linking, from
the report to the gate, the figures and the work orders, from the last report of a BMC's log to the next, from the
trials of a load to the nodes that it blames, from the explanation of a fabric to the nodes that it holds.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from clusterctl.cabling.explain.explanation import FaultKind
from clusterctl.cabling.explain.findings import faults_of_fabric, findings_by_node
from clusterctl.cabling.explain.verify import CablingVerification
from clusterctl.fleet.codec import report_from_data, report_to_data
from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Finding, Origin, Report
from clusterctl.fleet.finding_code import Code, descriptions
from clusterctl.fleet.gate import Confirm, Hold, Policy, Quarantine, decide
from clusterctl.fleet.hardware.matching import match
from clusterctl.fleet.node import Stage
from clusterctl.fleet.reporting.figures import ReportFigure, figures
from clusterctl.fleet.reporting.work_orders import work_orders
from clusterctl_burnin.campaign import Campaign, GroupTrials
from clusterctl_burnin.check import causes_of
from clusterctl_burnin.loads import report as load_report
from clusterctl_burnin.loads.model import Participant
from clusterctl_burnin.roots import link_roots
from clusterctl_burnin.suites.suite import shipped_suite
from clusterctl_burnin.sweep import unmeasured
from tests.burnin import campaign_kit, test_checks, test_clock_and_port_checks, test_host_checks
from tests.burnin import test_bmc_log_predecessor as log
from tests.burnin.kit import expected, readings
from tests.cabling.bench import Bench
from tests.fleet.people import NOW, node, reported, stopped
from tests.fleet.test_match import SKU, WHOLE

Reword = Callable[[], str]
SAMPLED = 60
"""Pairs of faults on one node, in addition to every fault alone."""


def one_word() -> Reword:
    """Return one word for all: code that compares causes finds them equal everywhere."""
    return lambda: "word"


def distinct_words() -> Reword:
    """Return another word each time: code that compares causes, or looks for a word in them, finds none."""
    numbers = itertools.count()
    return lambda: f"word{next(numbers)}"


WORDINGS = (one_word, distinct_words)


def reworded(findings: Iterable[Finding], word: Reword) -> tuple[Finding, ...]:
    """Return the findings with each cause and remedy replaced."""
    return tuple(replace(f, cause=f.cause and word(), remedy=f.remedy and word()) for f in findings)


def judgement(finding: Finding) -> tuple[object, ...]:
    """Return everything of a finding that is no prose."""
    return finding.key, finding.code, finding.verdict, finding.root, finding.measured, finding.expected, finding.fault


def linked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return link_roots(findings, causes_of(shipped_suite().checks))


def found(faults: Sequence[Any]) -> tuple[Finding, ...]:
    """Return what all checks find on a node with these faults, before anything is linked."""
    broken = {name: change for case in faults for name, change in case.broken.items()}
    return tuple(f for check in shipped_suite().checks for f in check.findings(readings(**broken), expected()))


def faults() -> list[Any]:
    cases = (*test_checks.CASES, *test_clock_and_port_checks.CASES, *test_host_checks.CASES)
    return [case for case in cases if getattr(case, "broken", None)]


def nodes_of_faults() -> list[tuple[Any, ...]]:
    """Return every fault of the checks' tests alone, and a sample of pairs."""
    alone = faults()
    pairs = list(itertools.combinations(alone, 2))
    return [*((one,) for one in alone), *random.Random(18).sample(pairs, SAMPLED)]


@functools.cache
def findings_of_faults() -> tuple[tuple[Finding, ...], ...]:
    return tuple(found(broken) for broken in nodes_of_faults())


def outcome(findings: tuple[Finding, ...], step: str = "burnin") -> tuple[object, ...]:
    """Return the gate's decisions, the figures and the work orders, without their prose."""
    report = Report(step, "bootstrap", findings, frozenset({Origin.REAL}))
    state = reported(node(Stage.CABLED, "n1", "S-n1"), step, *findings)
    decisions = [decide(replace(state, attempts=tries), report, Policy(), NOW) for tries in (0, 2)]
    orders = work_orders([stopped(state, step, Kind.NODE_QUARANTINED)], NOW)
    answers = [(o.part, o.serial, o.location, [(f.key, f.code) for f in o.findings]) for o in orders]
    return report.verdict, [_decision(one) for one in decisions], _figures(figures([state])), answers


def _decision(decision: object) -> object:
    if isinstance(decision, Quarantine):
        return decision.finding.key, decision.finding.code
    return type(decision) if isinstance(decision, Confirm | Hold) else decision


def _figures(found: Iterable[ReportFigure]) -> list[object]:
    return [(one.check, one.unit, one.bound, one.values) for one in found]


@pytest.mark.parametrize("wording", WORDINGS)
def test_roots_of_a_burn_in(wording: Callable[[], Reword]) -> None:
    """The same consequences point at the same roots, and the gate, figures and orders are the same."""
    consequences = 0
    for plain in findings_of_faults():
        roots = linked(plain)
        again = linked(reworded(plain, wording()))
        assert list(map(judgement, again)) == list(map(judgement, roots))
        consequences += sum(bool(finding.root) for finding in roots)
        assert outcome(reworded(roots, wording())) == outcome(roots)
    assert consequences > 100


@pytest.mark.parametrize("wording", WORDINGS)
def test_a_node_that_gave_no_answer_is_one_root(wording: Callable[[], Reword]) -> None:
    """Every check reports, and one of them stands for all."""
    silent = tuple(replace(f, root="") for f in unmeasured(shipped_suite().checks, "no answer", "look"))
    again = link_roots(reworded(silent, wording()))
    assert len([finding for finding in again if not finding.root]) == 1


@pytest.mark.parametrize("wording", WORDINGS)
def test_inventories(wording: Callable[[], Reword]) -> None:
    """An incomplete or unhealthy inventory leads to the same decisions."""
    parts = ("gpus", "hcas", "drives", "psus", "cpu_count", "memory_gib", "temperatures", "dimms")
    changed = [WHOLE, *(replace(WHOLE, **{part: None}) for part in parts), replace(WHOLE, health="Critical")]
    changed += [replace(WHOLE, gpus=(WHOLE.gpus or ())[1:]), replace(WHOLE, drives=(WHOLE.drives or ())[1:])]
    for inventory in changed:
        plain = match(inventory, SKU)
        assert outcome(reworded(plain, wording()), "discover") == outcome(plain, "discover")


@pytest.mark.parametrize("wording", WORDINGS)
def test_a_part_that_was_replaced(wording: Callable[[], Reword]) -> None:
    """The log's entry belongs to the predecessor however the last report worded it; one entry more does not."""
    (old,) = reworded([log.reported([log.entry(3)], "M2")], wording())
    for _ in range(2):
        (old,) = reworded([log.reported([log.entry(3)], "M9", before=[old])], wording())
        assert (old.code, old.serial) == (Code.LOG_ENTRY_OF_PREDECESSOR, "M2")
    assert log.reported([log.entry(0.1), log.entry(3)], "M9", before=[old]).serial == "M9"


def benches() -> list[Bench]:
    """Return fabrics with one fault each, from one end to a whole switch."""
    ends = sorted({end for cable in Bench().cables for end in cable})
    hosts = [end for end in ends if not end.port.isdigit()]
    unplugged, swapped, slow, dark = Bench(), Bench(), Bench(), Bench()
    unplugged.unplug(hosts[0])
    swapped.rotate(hosts[0], hosts[-1])
    slow.rates[hosts[1]] = (2, "NDR")
    dark.unplug_device(next(end.device for end in ends if end.device.startswith("leaf")))
    return [Bench(), unplugged, swapped, slow, dark]


def cabling(verification: CablingVerification) -> tuple[object, ...]:
    """Return each host's findings, the fabric's faults and all work orders, without their prose."""
    names = sorted(verification.hosts)
    by_node = findings_by_node(verification, names)
    faults = faults_of_fabric(verification, 100)
    nodes = [
        stopped(reported(node(Stage.CONFIGURED, name, f"S-{name}"), "cable", *by_node[name]), "cable") for name in names
    ]
    orders = work_orders(nodes, NOW, [(fault, ()) for fault in faults])
    answers = [(o.part, [n.name for n in o.nodes], [(f.key, f.code) for f in o.findings]) for o in orders]
    return [[(f.key, f.code, f.verdict, f.root) for f in by_node[name]] for name in names], len(faults), answers


@pytest.mark.parametrize("wording", WORDINGS)
def test_cabling(wording: Callable[[], Reword]) -> None:
    """One fault of the fabric stays one work order, however it is explained."""
    for bench in benches():
        plain = bench.verify(host_gbps=400.0)
        word = wording()
        again = replace(plain, explanations=tuple(replace(e, cause=word(), action=word()) for e in plain.explanations))
        assert cabling(again) == cabling(plain)


def test_findings_survive_the_journal() -> None:
    """Codes, quantities and bounds are the same after JSON."""
    for plain in findings_of_faults()[::20]:
        report = Report("burnin", "bootstrap", linked(plain))
        assert report_from_data(report_to_data(report)) == report


def test_every_code_has_one_line() -> None:
    """A name, which identifies it in JSON, and a sentence of its own for the reference page."""
    answers = dict(descriptions())
    assert list(answers) == [code.name.lower() for code in Code]
    assert len(set(answers.values())) == len(answers)
    assert all(line.endswith(".") and "\n" not in line for line in answers.values())


def test_every_kind_of_explanation_has_a_code() -> None:
    """Cabling's kinds of faults and their codes have the same names."""
    codes = {code.name.removeprefix("CABLING_") for code in Code if code.name.startswith("CABLING_")}
    assert codes == {kind.name for kind in FaultKind}


def hunted(fails: campaign_kit.Fails, load: str, word: Reword) -> list[tuple[object, ...]]:
    """Return the judgements of all nodes after a hunt whose trials explain themselves with `word`."""
    names = campaign_kit.names(8)
    campaign = Campaign(campaign_kit.PLAN, load, names)
    while (asked := campaign.next()) is not None:
        for one in campaign_kit.reported(asked, fails, load):
            trials = tuple(replace(trial, detail=word(), remedy=word()) for trial in one.trials)
            campaign.add(GroupTrials(one.number, one.group, trials))
    members = [Participant(name, f"192.0.2.{number}", ("mlx5_0",)) for number, name in enumerate(names)]
    by_node = load_report.findings([campaign.measured()], members, campaign_kit.PLAN.limits)
    return [judgement(finding) for name in names for finding in linked(by_node[name])]


HUNTS = (
    lambda group: "node003" in group,
    lambda group: {"node002", "node005"} <= set(group),
    lambda group: "node001" in group or "node007" in group,
    lambda group: True,
    lambda group: False,
)


@pytest.mark.parametrize("wording", WORDINGS)
@pytest.mark.parametrize("load", [campaign_kit.PAIRS, campaign_kit.GROUPS])
@pytest.mark.parametrize("fails", HUNTS)
def test_hunting(fails: campaign_kit.Fails, load: str, wording: Callable[[], Reword]) -> None:
    """The nodes that a load blames are the same, however its trials explain what went wrong."""
    assert hunted(fails, load, wording()) == hunted(fails, load, lambda: "")
