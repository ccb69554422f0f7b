"""What `clusterctl-node check` does on a node: run the probes, judge them by the compiled limits, print the findings.

Standard library only, and the modules that the build copies. Meant for Slurm's HealthCheckProgram and prolog.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
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
from clusterctl_burnin.kernel_log.slot_power import settled
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.node_check.service import CHECKS_S, SLURM_S, Settings, epilog, health, prolog
from clusterctl_burnin.probe import Readings, parse_readings
from clusterctl_burnin.sweep import judge, sweep, unmeasured

CONTENT = "node_check.json"
"""The file of this package that the build writes."""
UNMEASURED = 4
BROKEN = 3
"""Exit code where the program itself could not go on: 1 is a failure of the node."""
END_S = 4.0
"""Seconds that are left, after the last probe, for the answer and its judgement; a part of them where time is short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What is known of one node. `shared_slots`: see `slot_power.settled`."""

    serial: str
    sku: str
    driver_version: str = ""
    shared_slots: tuple[str, ...] = ()


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

    def run(self, seconds: float, *, quick: bool = False) -> tuple[Finding, ...]:
        """Run the probes here and judge them; what does not end in time is unmeasured. `quick`: see `quick_checks`.

        A probe that hangs is ended before the time is over, so that the others are judged nevertheless.
        """
        _, kind = self.facts()
        checks = quick_checks(self.checks()) if quick else self.checks()
        budget = seconds - min(END_S, seconds / 3)
        plan = sweep(checks, kind.limits.patience, self.content.requirements, budget)
        sent = datetime.now(UTC)
        argv = [interpreter(), "-I", "-S", "-"]  # the standard library only, and nothing of the working directory
        try:
            ran = subprocess.run(argv, input=plan.stdin, capture_output=True, timeout=seconds, check=False)
            readings = parse_readings(ran.stdout.decode(errors="replace"))
        except OSError as error:
            remedy = "check which resource of the node is exhausted (processes, memory, open files)"
            return unmeasured(plan.checks, f"the probes could not be started: {error.strerror}", remedy)
        except subprocess.TimeoutExpired:
            remedy = "look for hung drivers and file systems on the node"
            return unmeasured(plan.checks, f"the probes did not end within {seconds:g} s", remedy)
        except ClusterctlError as error:
            return unmeasured(plan.checks, error.message, "run clusterctl-node check as root on the node")
        return self.judged(readings, sent, checks)

    def judged(
        self, readings: Readings, sent: datetime | None = None, checks: Sequence[Check] | None = None
    ) -> tuple[Finding, ...]:
        """Return the findings of readings; `sent`: None for recorded ones; `checks`: None for all."""
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
        found = judge(self.checks() if checks is None else checks, readings, expected).findings
        return tuple(settled(found, node.shared_slots))


def interpreter() -> str:
    """Return the Python that runs this; without PATH, as of Slurm's prolog, Python does not know its own name."""
    return sys.executable or str(Path("/proc/self/exe").resolve())


def quick_checks(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return the checks that a job can wait for: none whose probe reads twice or waits."""
    return tuple(one for one in checks if not any(probe.again_after or probe.waits for probe in one.probes))


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
    options = _parser().parse_args(argv)
    began = time.monotonic()
    try:
        if options.command == "epilog":
            return epilog(_settings(options), os.environ)
        text = files("clusterctl_burnin").joinpath(CONTENT).read_text(encoding="utf-8")
        check = NodeCheck(content_of(text), options.node)
        if options.judge:
            return _judge_file(check, options.judge)
        return _run(check, options, began)
    except ClusterctlError as error:
        sys.stderr.write(f"{error}\n")
        return 0 if options.command == "prolog" else UsageError.exit_code  # 1 is a failure of the node
    except Exception as error:  # noqa: BLE001 — a traceback ends with 1, the code of a failed node
        sys.stderr.write(f"clusterctl-node could not go on: {type(error).__name__}: {error}\n")
        return BROKEN if options.command == "check" else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="clusterctl-node", description=__doc__)
    parser.add_argument("command", choices=["check", "health", "prolog", "epilog"])
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--node", default=_own_name(), help="default: SLURMD_NODENAME, or the host name")
    parser.add_argument("--seconds", type=float, help=f"end the probes after so long; default: {_listed(CHECKS_S)}")
    parser.add_argument("--judge", metavar="FILE", help="judge recorded readings, one JSON document a line, instead")
    parser.add_argument("--quick", action="store_true", help="leave out checks that read counters twice, or wait")
    drains = parser.add_argument_group("health, prolog, epilog")
    drains.add_argument("--percent", type=float, default=2.0, help="nodes that one check may drain within an hour (2)")
    drains.add_argument("--slurm-seconds", type=float, help=f"wait so long for Slurm; default: {_listed(SLURM_S)}")
    usual = Settings(node="")
    for name, value in {
        "scontrol": usual.scontrol,
        "squeue": usual.squeue,
        "nvidia-smi": usual.nvidia_smi,
        "textfile": usual.textfile,
        "report": usual.report,
    }.items():
        drains.add_argument(f"--{name}", default=value, metavar="PATH", help=f"default: {value}")
    return parser


def _listed(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{command} {value:g}" for command, value in seconds.items())


def _own_name() -> str:
    return os.environ.get("SLURMD_NODENAME") or platform.node().split(".")[0]


def _settings(options: argparse.Namespace) -> Settings:
    return Settings(
        node=options.node,
        percent=options.percent,
        slurm_seconds=options.slurm_seconds or SLURM_S[options.command],
        scontrol=options.scontrol,
        squeue=options.squeue,
        nvidia_smi=options.nvidia_smi,
        textfile=Path(options.textfile),
        report=Path(options.report),
    )


def _run(check: NodeCheck, options: argparse.Namespace, began: float) -> int:
    """Check the node, report it, and do what the command is for."""
    quick = options.quick or options.command == "prolog"
    findings = check.run(options.seconds or CHECKS_S[options.command], quick=quick)
    took = time.monotonic() - began
    if options.command == "check":
        _print(report(check, findings, took, as_json=options.json))
        return exit_code(findings)
    settings = _settings(options)
    _keep(settings.report, report(check, findings, took, as_json=False))
    return health(settings, findings) if options.command == "health" else prolog(settings, findings)


def _keep(file: Path, text: str) -> None:
    try:
        file.write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        sys.stderr.write(f"{file}: {error.strerror}\n")


def _print(text: str) -> None:
    try:
        sys.stdout.buffer.write(f"{text}\n".encode(errors="backslashreplace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # `… | head`: the exit code still counts; Python flushes once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _judge_file(check: NodeCheck, name: str) -> int:
    codes = {0}
    with Path(name).open(encoding="utf-8") as file:
        for line in file:
            findings = check.judged(parse_readings(line))
            _print(report(check, findings, 0.0, as_json=True))
            codes.add(exit_code(findings))
    return 1 if 1 in codes else max(codes)
