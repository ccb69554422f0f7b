"""check: the checks without loads on nodes of any stage; one bad host changes nothing for others, nothing is written."""

from __future__ import annotations

import ast
import json
import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from benchmarks.judge import SERIAL, recording
from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.errors import UnreachableError
from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Observed, Verdict
from clusterctl.fleet.node import Stage
from clusterctl.operations import check as operation
from clusterctl.operations.check import CheckedNode, CheckRequest, CheckResult
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline, HostAddress, Ran
from clusterctl_burnin.registry import CHECKS
from tests.cli.nights import SilentOutside
from tests.edges.site.ready import write_ready_site
from tests.events import advances, new_event
from tests.steps.fakes import inventory

SKU = "dell-xe9680-h100"
SHEET = "name,bmc_address,serial,rack,unit\n" + "".join(f"n{i},10.0.0.{i},,A01,{i}\n" for i in range(1, 5))


@dataclass
class Hosts:
    """Hosts that answer each probe as a healthy node does, with the texts that `answers` changes."""

    answers: Mapping[str, Mapping[str, str]]
    silent: frozenset[str] = frozenset()

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        if host.name in self.silent:
            raise UnreachableError("no SSH: [Errno 113] No route to host", where=host.name)
        if host.name not in self.answers:
            return Observed(Ran(0, "no JSON", "", 0.1), ())
        call = stdin.decode().strip().splitlines()[-1]
        spec = json.loads(ast.literal_eval(call.removeprefix("main(json.loads(").removesuffix("))")))
        document = recording(host.name, random.Random(1), words=self.answers[host.name])["readings"]
        asked = {probe["name"] for probe in spec["probes"]}
        document["probes"] = {name: probe for name, probe in document["probes"].items() if name in asked}
        return Observed(Ran(0, json.dumps(document), "", 0.1), ())


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SiteContext]:
    """n1 is gold, n2 installed, n3 discovered without an address, n4 never seen."""
    write_ready_site(tmp_path)
    (tmp_path / "bmcs.csv").write_text(SHEET)
    context = open_site(tmp_path)
    for name, stage in (("n1", Stage.GOLD), ("n2", Stage.INSTALLED), ("n3", Stage.DISCOVERED)):
        seen = {"inventory": inventory_to_data(inventory(SERIAL + name)), "sku": SKU, "root_disk": f"D-{name}"}
        described = {"name": name, "bmc": f"10.0.0.{name[1]}", "rack": "A01", "unit": int(name[1])}
        address = {"address": f"10.0.1.{name[1]}"}
        key = {"public": "ssh-ed25519 AAAA"}
        events = [
            new_event("node", f"id-{name}", Kind.NODE_DESCRIBED, described),
            new_event("node", f"id-{name}", Kind.NODE_IDENTIFIED, seen),
            new_event("node", f"id-{name}", Kind.HOST_KEY_PINNED, key),
            *([new_event("node", f"id-{name}", Kind.NODE_ADDRESSED, address)] if name != "n3" else []),
            *advances(f"id-{name}", stage.value),
        ]
        context.journal.append(events)
    yield context
    context.journal.close()


def checked(context: SiteContext, hosts: Hosts, *names: str, idle: bool = False) -> CheckResult:
    with_hosts = replace(context, connect=lambda site, _access: SilentOutside(site, shell=hosts))
    return operation.run(with_hosts, CheckRequest(nodes=names, idle=idle), Control())


def by_name(result: CheckResult) -> Mapping[str, CheckedNode]:
    return {node.node: node for node in result.nodes}


def verdicts_of(node: CheckedNode, check: str) -> set[Verdict]:
    return {finding.verdict for finding in node.findings if finding.check == check}


def codes(node: CheckedNode) -> list[tuple[str, str, str]]:
    """Return what was found, without figures: the clock goes on between two checks."""
    return [(finding.key, finding.verdict.value, finding.code.value) for finding in node.findings]


def answers(name: str) -> Mapping[str, str]:
    return {"system_serial": f"{SERIAL}{name}\n"}


def test_a_bad_host_changes_nothing_for_others(context: SiteContext) -> None:
    """A silent host fails by itself, a host whose answer is malformed is inconclusive, the others are judged."""
    result = by_name(checked(context, Hosts({"n1": answers("n1")}, frozenset({"n2"})), "n1", "n2"))
    assert verdicts_of(result["n1"], "identity") == {Verdict.PASS}
    assert verdicts_of(result["n2"], "reachable") == {Verdict.FAIL}
    malformed = by_name(checked(context, Hosts({"n1": answers("n1")}), "n1", "n2"))
    assert codes(result["n1"]) == codes(malformed["n1"])
    assert malformed["n2"].verdict is Verdict.INCONCLUSIVE


def test_every_stage_is_checked_and_the_unknown_is_inconclusive(context: SiteContext) -> None:
    """Without an address, a serial or a SKU there is one inconclusive finding with a remedy; exit code 4."""
    result = checked(context, Hosts({}), "n3", "n4")
    assert result.exit_code == operation.UNMEASURED
    for node in result.nodes:
        (finding,) = node.findings
        assert finding.verdict is Verdict.INCONCLUSIVE
        assert finding.remedy


def test_only_a_failure_is_exit_code_1(context: SiteContext) -> None:
    """One failing node among inconclusive ones decides."""
    result = checked(context, Hosts({}, frozenset({"n2"})), "n*")
    assert {node.verdict for node in result.nodes} == {Verdict.FAIL, Verdict.INCONCLUSIVE}
    assert result.exit_code == 1


def test_nothing_is_written(context: SiteContext) -> None:
    """The journal has not one event and no claim more; findings name no evidence, since none is kept."""
    before = max(state.last_seq for state in context.journal.states())
    result = checked(context, Hosts({"n1": answers("n1"), "n2": answers("other")}), "n1", "n2")
    assert max(state.last_seq for state in context.journal.states()) == before
    assert not any(finding.evidence for node in result.nodes for finding in node.findings)
    assert verdicts_of(by_name(result)["n2"], "identity") == {Verdict.FAIL}


def test_what_a_job_would_fail_needs_idle(context: SiteContext) -> None:
    """Checks of an idle node are left out, and named; with `idle` all checks of the suite are made."""
    hosts = Hosts({"n1": answers("n1")})
    usual, idle = checked(context, hosts, "n1"), checked(context, hosts, "n1", idle=True)
    assert {"gpu_idle", "cpu_frequency"} <= set(usual.left_out)
    assert all(CHECKS[name].idle_only for name in usual.left_out)
    ran = {finding.check for finding in usual.nodes[0].findings}
    assert not ran & set(usual.left_out)
    assert set(usual.left_out) <= {finding.check for finding in idle.nodes[0].findings}
    assert idle.left_out == ()


def test_a_stopped_check_reports_it(context: SiteContext) -> None:
    """Nodes that were not checked are not in the result; exit code 130."""
    stopped = threading.Event()
    stopped.set()
    with_hosts = replace(context, connect=lambda site, _access: SilentOutside(site, shell=Hosts({})))
    result = operation.run(with_hosts, CheckRequest(nodes=("n1", "n2")), Control(cancelled=stopped))
    assert (result.nodes, result.exit_code) == ((), 130)
