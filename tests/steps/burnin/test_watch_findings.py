"""Findings of the watch and of the second look: what is known already is not repeated, what is worse is not lost."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.steps.burnin.node_under_test import unknown

NOTED = Finding(check="kernel_log", verdict=Verdict.WARN, code=Code.KERNEL_MESSAGE, subject="node", cause="a warning")


def test_a_failure_is_not_hidden_by_an_earlier_warning_of_the_same_part() -> None:
    """Messages of the kernel share a code: what only warned before the load does not stand for what failed in it."""
    failed = replace(NOTED, verdict=Verdict.FAIL, cause="the root file system is read-only")
    assert unknown([failed], [NOTED]) == [failed]
    assert unknown([NOTED], [failed]) == []
    assert unknown([failed, NOTED], [NOTED, failed]) == []


def test_what_is_of_another_part_or_code_is_new() -> None:
    """A second GPU, or another error of the same one."""
    others = [replace(NOTED, subject="gpu 1"), replace(NOTED, code=Code.KERNEL_MESSAGES_UNKNOWN)]
    assert unknown([NOTED, *others], [NOTED]) == others
