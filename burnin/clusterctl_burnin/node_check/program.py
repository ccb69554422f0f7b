"""What `clusterctl-node check` does on a node: run the probes, judge them by the compiled limits, print the findings.

Standard library only, and the modules that the build copies. Meant for Slurm's HealthCheckProgram and prolog.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl.fleet.finding import Finding, Verdict, worst
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.node import Serial
from clusterctl.formats.documents import MisfitError, read_json
from clusterctl_burnin.check import Check, Expected
from clusterctl_burnin.host_requirements import HostRequirements
from clusterctl_burnin.kernel_log.known_lines import KnownLines
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.probe import Readings, parse_readings
from clusterctl_burnin.sweep import judge, sweep, unmeasured

CONTENT = "node_check.json"
"""The file of this package that the build writes."""
HARD_S = 55.0
"""Seconds after which the probes are ended: Slurm ends a health check after 60 s."""
UNMEASURED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What is known of one node."""

    serial: str
    sku: str
    driver_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkuFacts:
    """The hardware of a kind of node, and its limits."""

    sku: Sku
    limits: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What the build compiles into the file. `checks`: module names below `clusterctl_burnin.checks`, in order."""

    version: int
    built: str
    checks: tuple[str, ...]
    left_out: tuple[str, ...]
    nodes: Mapping[str, NodeFacts]
    skus: Mapping[str, SkuFacts]
    requirements: HostRequirements
    known_lines: KnownLines


def content_of(text: str) -> Content:
    """Return the compiled content. Raises `UsageError` where it is not of this version."""
    try:
        return read_json(Content, text)
    except MisfitError as error:
        where = f"{CONTENT} {error.field}".strip()
        raise UsageError(f"its content is damaged: {error}", where=where, remedy="build the file again") from None


def exit_code(findings: Sequence[Finding]) -> int:
    """Return 1 where something failed, 4 where something was not measured, else 0."""
    verdict = worst(finding.verdict for finding in findings)
    return 1 if verdict is Verdict.FAIL else UNMEASURED if verdict is Verdict.INCONCLUSIVE else 0


@dataclass(frozen=True, slots=True)
class NodeCheck:
    """The checks of one node."""

    content: Content
    node: str

    def facts(self) -> tuple[NodeFacts, SkuFacts]:
        """Return what is known of the node. Raises `UsageError` where the file does not have it."""
        found = self.content.nodes.get(self.node)
        if found is None:
            raise UsageError(
                f"the file of {self.content.built} has no node {self.node!r}",
                where="--node",
                remedy="write it again (clusterctl burnin node-file), or name the node with --node",
            )
        return found, self.content.skus[found.sku]

    def checks(self) -> tuple[Check, ...]:
        """Return the checks in their order."""
        modules = (importlib.import_module(f"clusterctl_burnin.checks.{name}") for name in self.content.checks)
        return tuple(module.CHECK for module in modules)

    def run(self, seconds: float) -> tuple[Finding, ...]:
        """Run the probes here and judge them; what does not end in time is unmeasured."""
        _, kind = self.facts()
        plan = sweep(self.checks(), kind.limits.patience, self.content.requirements)
        sent = datetime.now(UTC)
        try:
            ran = subprocess.run([sys.executable, "-"], input=plan.stdin, capture_output=True, timeout=seconds)  # noqa: PLW1510
            readings = parse_readings(ran.stdout.decode(errors="replace"))
        except subprocess.TimeoutExpired:
            remedy = "look for hung drivers and file systems on the node"
            return unmeasured(plan.checks, f"the probes did not end within {seconds:g} s", remedy)
        except ClusterctlError as error:
            return unmeasured(plan.checks, error.message, "run clusterctl-node check as root on the node")
        return self.judged(readings, sent)

    def judged(self, readings: Readings, sent: datetime | None = None) -> tuple[Finding, ...]:
        """Return the findings of readings; `sent`: None for recorded ones."""
        node, kind = self.facts()
        expected = Expected(
            name=self.node,
            serial=Serial(node.serial),
            sku=kind.sku,
            limits=kind.limits,
            sent=sent or readings.started,
            received=datetime.now(UTC) if sent else readings.finished,
            driver_version=node.driver_version,
            known_lines=self.content.known_lines,
        )
        return judge(self.checks(), readings, expected).findings


def as_data(finding: Finding) -> dict[str, Any]:
    """Return a finding as JSON values."""
    return {
        "check": finding.check,
        "verdict": finding.verdict.value,
        "code": finding.code.value,
        "subject": finding.subject,
        "cause": finding.cause,
        "remedy": finding.remedy,
        "serial": finding.serial,
        "root": finding.root,
    }


def report(check: NodeCheck, findings: Sequence[Finding], seconds: float, *, as_json: bool) -> str:
    """Return what is printed: a document, or a line for each finding that is no pass and no consequence."""
    verdict = worst(finding.verdict for finding in findings)
    if as_json:
        left_out = list(check.content.left_out)
        head = {"node": check.node, "verdict": verdict.value, "seconds": round(seconds, 1), "left_out": left_out}
        return json.dumps({**head, "findings": [as_data(finding) for finding in findings]})
    lines = [f"{check.node}: {verdict.value}"]
    for finding in findings:
        if finding.verdict in (Verdict.PASS, Verdict.NOT_APPLICABLE) or finding.root:
            continue
        lines.append(f"  {finding.verdict.value} {finding.check}, {finding.subject}: {finding.cause}")
        if finding.remedy:
            lines.append(f"    {finding.remedy}")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    parser = argparse.ArgumentParser(prog="clusterctl-node", description=__doc__)
    parser.add_argument("command", choices=["check"])
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--node", default=platform.node().split(".")[0], help="default: the host name")
    parser.add_argument("--seconds", type=float, default=HARD_S, help=f"end the probes after so long ({HARD_S:g})")
    parser.add_argument("--judge", metavar="FILE", help="judge recorded readings, one JSON document a line, instead")
    options = parser.parse_args(argv)
    try:
        text = files("clusterctl_burnin").joinpath(CONTENT).read_text(encoding="utf-8")
        check = NodeCheck(content_of(text), options.node)
        if options.judge:
            return _judge_file(check, options.judge)
        began = time.monotonic()
        findings = check.run(options.seconds)
        _print(report(check, findings, time.monotonic() - began, as_json=options.json))
        return exit_code(findings)
    except ClusterctlError as error:
        sys.stderr.write(f"{error}\n")
        return UsageError.exit_code  # 1 is a failure of the node


def _print(text: str) -> None:
    sys.stdout.buffer.write(f"{text}\n".encode(errors="backslashreplace"))
    sys.stdout.buffer.flush()


def _judge_file(check: NodeCheck, name: str) -> int:
    codes = {0}
    with Path(name).open(encoding="utf-8") as file:
        for line in file:
            findings = check.judged(parse_readings(line))
            _print(report(check, findings, 0.0, as_json=True))
            codes.add(exit_code(findings))
    return 1 if 1 in codes else max(codes)
