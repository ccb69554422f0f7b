"""Loads of one node in the burn-in: after the checks, before the loads of several, and only where all before passed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from clusterctl.fleet.errors import OutcomeUnknownError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.ports import Deadline, HostAddress
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.step import StepOutcome
from clusterctl_burnin.check import Expected
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.loads.node_load import NodeLoad
from clusterctl_burnin.probe import Probe, Readings
from clusterctl_burnin.recordings.export import export
from clusterctl_burnin.recordings.recording import Recording, parse_recording
from clusterctl_burnin.recordings.rejudge import RecordedMachineKind, Rejudging, verdicts
from clusterctl_burnin.recordings.session import session_in
from tests.lab_data import lab_limits
from tests.steps.burnin.test_burnin import SKU, SUITE, Hosts, burnin_step, nodes, worst


def solo(name: str) -> NodeLoad:
    """A load that fails where its program prints `bad`."""
    kept = Probe(name, (name,))

    def probes(limits: Limits, seconds: int | None) -> tuple[Probe, ...]:
        del limits
        return (replace(kept, argv=(name, "--seconds", str(seconds)), timeout=20.0),)

    def judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
        del expected
        good = "bad" not in readings.text(kept)
        verdict = Verdict.PASS if good else Verdict.FAIL
        yield Finding(
            check=name,
            verdict=verdict,
            code=Code.GPU_ECC_UNCORRECTABLE,
            cause="it ran",
            remedy="repair",
            deterministic=False,
        )

    return NodeLoad(name, probes, judge)


LOADED = replace(SUITE, solo=(solo("burn"), solo("read")), node_seconds={"burn": 7})


@dataclass
class Worked(Hosts):
    """Remembers what each host was put to, in order; `bad`: the nodes whose `burn` goes wrong."""

    bad: frozenset[str] = frozenset()
    dead_of: frozenset[str] = frozenset()
    done: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)

    def _answer(self, host: HostAddress, argv: list[str]) -> dict[str, object]:
        self.done.setdefault(host.name, []).append(tuple(argv))
        if argv[0] == "burn" and host.name in self.dead_of:
            self.silent |= {host.name}
            raise OutcomeUnknownError("the connection broke while python3 ran")
        if argv[0] not in {"burn", "read"}:
            return super()._answer(host, argv)
        text = "bad" if host.name in self.bad and argv[0] == "burn" else "good"
        return {"argv": argv, "status": "ok", "rc": 0, "stdout": text, "stderr": "", "started": 0.0, "seconds": 1.0}


def run(hosts: Hosts, count: int) -> dict[str, StepOutcome]:
    step = burnin_step(hosts, suite=LOADED)
    outcomes = step.run(nodes(count), IntentLog(None, {}), Deadline.after(60))  # type: ignore[arg-type]
    return {outcome.node.replace("id", "n"): outcome for outcome in outcomes}


def test_they_run_between_the_checks_and_the_loads_of_several() -> None:
    """One after another on each node, for as long as the suite or the limits file sets; each reports."""
    hosts = Worked()
    outcomes = run(hosts, 4)
    assert {worst(outcome) for outcome in outcomes.values()} == {Verdict.PASS}
    for name, outcome in outcomes.items():
        words = [argv[0] for argv in hosts.done[name]]
        assert words[:3] == ["ibstat", "burn", "read"]
        assert set(words[3:]) == {"ib_write_bw"}
        assert ("burn", "--seconds", "7") in hosts.done[name]
        assert ("read", "--seconds", "None") in hosts.done[name]
        assert {finding.check for finding in outcome.findings} == LOADED.required


def test_a_node_that_fails_one_is_loaded_no_further() -> None:
    """It is reported at once; a load that was not run points at the failure; its partners are measured without it."""
    hosts = Worked(bad=frozenset({"n1"}))
    outcomes = run(hosts, 5)
    found = {finding.check: finding for finding in outcomes["n1"].findings}
    assert found["burn"].verdict is Verdict.FAIL
    for check in ("read", "ib_write_bw"):
        assert (found[check].verdict, found[check].root) == (Verdict.INCONCLUSIVE, "burn:node")
        assert "not run, because burn did not pass" in found[check].cause
    assert [argv[0] for argv in hosts.done["n1"]] == ["ibstat", "burn"]
    assert {worst(outcome) for name, outcome in outcomes.items() if name != "n1"} == {Verdict.PASS}


def test_a_node_with_failed_checks_gets_none() -> None:
    """And each of them reports why."""
    hosts = Worked(broken=frozenset({"n0"}))
    outcome = run(hosts, 4)["n0"]
    assert [argv[0] for argv in hosts.done["n0"]] == ["ibstat"]
    assert {finding.check for finding in outcome.findings} == LOADED.required


def test_a_node_that_falls_silent_under_one_has_one_root() -> None:
    """The host's silence; the load that it died of follows from that."""
    outcome = run(Worked(dead_of=frozenset({"n2"})), 5)["n2"]
    (root,) = [finding for finding in outcome.findings if not finding.verdict.admits and not finding.root]
    assert root.check == "reachable"
    assert {finding.check for finding in outcome.findings} == {*LOADED.required, "reachable"}


def test_a_partner_is_not_put_to_work_alone() -> None:
    """A gold node that only helps is not burned in itself."""
    hosts = Worked()
    step = burnin_step(hosts, suite=LOADED, partners=nodes(2)[1:])
    (outcome,) = step.run(nodes(1), IntentLog(None, {}), Deadline.after(60))  # type: ignore[arg-type]
    assert worst(outcome) is Verdict.PASS
    assert "burn" not in [argv[0] for argv in hosts.done["n1"]]


def recorded(outcome: StepOutcome) -> Recording:
    """The outcome's evidence, exported and read again."""
    asked = [probe for check in LOADED.checks for probe in check.probes]
    found = export(nodes(2)[1], outcome.evidence, asked)
    assert found is not None
    assert found.left_out == ()
    return parse_recording(json.dumps(found.document).encode(), where="r.json")


def test_what_was_recorded_is_judged_again() -> None:
    """Export knows the loads' answers whatever method they ran by; who has none of a load is not judged by it."""
    outcome = run(Worked(bad=frozenset({"n1"})), 3)["n1"]
    recording = recorded(outcome)
    assert set(recording.readings.probes) == {"ibstat", "burn"}
    judging = Rejudging(LOADED.checks, LOADED.solo)
    ((node,), _) = verdicts([judging.judged(recording, RecordedMachineKind(SKU, lab_limits()))])
    assert {finding.check: finding.verdict for finding in node.findings} == {
        "adapter": Verdict.PASS,
        "burn": Verdict.FAIL,
    }
    assert node.not_judged == ("read",)


def test_the_session_of_the_checks_stays_that_of_the_recording() -> None:
    """A load's session is kept apart: its times are not those that the clock is judged by."""
    outcome = run(Worked(), 2)["n0"]
    sessions = [session for item in outcome.evidence if (session := session_in(item)) is not None]
    assert sorted(session.load for session in sessions) == ["", "burn", "read"]
