"""What the loads run, how their answers are read, and what they report for each node."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from clusterctl.fleet.finding import Finding, Origin, Verdict
from clusterctl.fleet.quantity import Quantity, at_least
from clusterctl_burnin.campaign import Campaign, read
from clusterctl_burnin.limits.reading import shipped_limits
from clusterctl_burnin.loads.model import Answer, Command, Participant, ProcessRole, Round, TrialOutcome, Tried
from clusterctl_burnin.loads.multi_node.all_reduce import group
from clusterctl_burnin.loads.multi_node.ib_write_bw import pair
from clusterctl_burnin.loads.report import findings
from clusterctl_burnin.probe import ProbeResult, Readings, Status
from tests.burnin.campaign_kit import PLAN
from tests.burnin.campaign_kit import measured as results

LIMITS = shipped_limits("h100-sxm-ndr400")
NOW = datetime(2026, 1, 2, tzinfo=UTC)
A, B, C, D = (Participant(name, f"10.0.0.{i}", ("mlx5_0", "mlx5_3"), (0, 3)) for i, name in enumerate("abcd", 1))
LOADS = ("ib_write_bw", "all_reduce")


def table(gbps: float) -> str:
    return f" #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n 8388608 20000 {gbps} {gbps} 0.005\n"


FAST = table(395)


def nccl(busbw: float, *, ranks: int = 32, wrong: int = 0, totals: bool = True) -> str:
    heads = "".join(f"#  Rank {i} Group 0 Pid 1 on h device 0 [0x1b] H100\n" for i in range(ranks))
    row = f" 8589934592 2147483648 float sum -1 100 300 {busbw} {wrong} 100 300 {busbw + 1} 0\n"
    return heads + row + (f"# Out of bounds values : {wrong} {'OK' if not wrong else 'FAILED'}\n" if totals else "")


def answer(**probes: ProbeResult) -> Readings:
    return Readings("h", "b", Origin.REAL, NOW, NOW, probes)


def ended(
    name: str, stdout: str = "", *, rc: int | None = 0, status: Status = Status.OK, stderr: str = ""
) -> ProbeResult:
    return ProbeResult(name, (name,), status, rc, stdout, stderr, NOW, 60.0)


def rails(first: ProbeResult | str, second: ProbeResult | str = FAST) -> Readings:
    """A member's answer with both rails."""
    given = {"ib_write_bw_rail0": first, "ib_write_bw_rail1": second}
    return answer(**{name: ended(name, v) if isinstance(v, str) else v for name, v in given.items()})


def measured(one: Round, server: Answer, client: Answer) -> Tried:
    return read(one, {one.members[0].name: server, one.members[1].name: client}, LIMITS)


def together(server: Participant, client: Participant) -> Round:
    return pair(server, client, LIMITS.methods.ib_write_bw, "ops")


def spec(command: Command) -> dict[str, object]:
    """The list of probes that a command's program carries."""
    call = command.stdin.decode().splitlines()[-1]
    found = re.fullmatch(r"main\(json\.loads\((.*)\)\)", call)
    assert found is not None
    return json.loads(json.loads(found[1]))


def test_a_pair_runs_every_rail_at_once_on_its_own_port() -> None:
    """Server and client of a rail use the same rail's device and the same port; the client names the server."""
    one = together(A, B)
    server, client = one.commands["a"], one.commands["b"]
    assert (server.role, client.role, list(one.commands)) == (ProcessRole.SERVER, ProcessRole.CLIENT, ["a", "b"])
    assert server.argv == ("python3", "-I", "-S", "-")
    theirs, ours = spec(server)["probes"], spec(client)["probes"]
    assert [p["argv"] for p in ours] == [[*p["argv"], "10.0.0.1"] for p in theirs]
    assert [(p["argv"][2], p["argv"][4]) for p in theirs] == [("mlx5_0", "18515"), ("mlx5_3", "18516")]
    assert spec(server)["parallel"] == 2
    assert "--report_gbits" in ours[0]["argv"]
    assert ours[0]["retry_on"] == "Couldn't connect to"
    assert one.timeout > LIMITS.methods.ib_write_bw.timeout_seconds


def test_an_all_reduce_has_one_rank_per_gpu_and_one_leader() -> None:
    """Mpirun on the first member names every member's address and its ranks."""
    one = group([A, B, C, D], LIMITS.methods.all_reduce, "ops")
    assert list(one.commands) == ["a"]
    (probe,) = spec(one.commands["a"])["probes"]
    argv = probe["argv"]
    assert argv[:3] == ["mpirun", "-np", "32"]
    assert "10.0.0.1:8,10.0.0.2:8,10.0.0.3:8,10.0.0.4:8" in argv
    assert argv[argv.index("all_reduce_perf") + 1 :][:4] == ["-b", "8589934592", "-e", "8589934592"]
    (as_root,) = spec(group([A, B], LIMITS.methods.all_reduce, "root").commands["a"])["probes"]
    assert as_root["argv"][0] == "env"


@pytest.mark.parametrize(
    ("server", "client", "outcome", "words"),
    [
        (table(395), table(395.5), TrialOutcome.PASSED, ""),
        (table(395), table(120.25), TrialOutcome.SLOW, ""),
        (table(395), "", TrialOutcome.UNMEASURED, "no bandwidth table"),
        (
            ended("x", rc=None, status=Status.TIMEOUT),
            ended("x", rc=None, status=Status.TIMEOUT),
            TrialOutcome.HUNG,
            "a and b",
        ),
        (
            ended("x", rc=1, stderr="Port number 1 state is Down"),
            table(1),
            TrialOutcome.FAILED,
            "a: Port number 1 state is Down",
        ),
        (ended("x", rc=None, status=Status.MISSING), table(1), TrialOutcome.UNMEASURED, "a has no ib_write_bw"),
    ],
)
def test_each_rail_of_a_pair_has_its_outcome(
    server: ProbeResult | str, client: ProbeResult | str, outcome: TrialOutcome, words: str
) -> None:
    """Fast, slow, not understood, hung, failed, not installed; the other rail is not touched by it."""
    first, second = measured(together(A, B), rails(server), rails(client)).trials
    assert (first.outcome, first.lane) == (outcome, {"a": "mlx5_0", "b": "mlx5_0"})
    assert words in first.detail
    assert second.outcome is TrialOutcome.PASSED
    assert first.evidence != second.evidence


def test_a_broken_session_measures_nothing() -> None:
    """The reason is kept; no node is slow for it."""
    trials = measured(together(A, B), "no SSH: refused", rails(table(1))).trials
    assert {t.outcome for t in trials} == {TrialOutcome.UNMEASURED}
    assert "a: no SSH: refused" in trials[0].detail


def test_a_member_without_devices_is_not_its_partners_fault() -> None:
    """Only the bare one is reported."""
    bare = replace(A, devices=())
    (trial,) = measured(together(bare, B), answer(), answer()).trials
    assert (trial.members, trial.outcome) == (("a",), TrialOutcome.UNMEASURED)


@pytest.mark.parametrize(
    ("result", "outcome", "words"),
    [
        (ended("all_reduce", nccl(366)), TrialOutcome.PASSED, ""),
        (ended("all_reduce", nccl(200)), TrialOutcome.SLOW, ""),
        (ended("all_reduce", nccl(366, wrong=7)), TrialOutcome.FAILED, "7 values"),
        (ended("all_reduce", nccl(366, wrong=7), rc=1, stderr="mpirun detected that"), TrialOutcome.FAILED, "7 values"),
        (ended("all_reduce", nccl(366, ranks=24)), TrialOutcome.UNMEASURED, "24 of 32 ranks"),
        (ended("all_reduce", nccl(366, totals=False)), TrialOutcome.UNMEASURED, "without its totals"),
        (ended("all_reduce", "nonsense"), TrialOutcome.UNMEASURED, "no row"),
        (ended("all_reduce", rc=None, status=Status.TIMEOUT), TrialOutcome.HUNG, "no result after 60 s"),
        (
            ended("all_reduce", rc=1, stderr="-----\nCUDA failure: ECC\n-----\n"),
            TrialOutcome.FAILED,
            "CUDA failure: ECC",
        ),
        (
            ended("all_reduce", rc=255, stderr="----\nORTE was unable to reliably start one or more daemons.\n----"),
            TrialOutcome.UNMEASURED,
            "unable to reliably start",
        ),
        (ended("all_reduce", rc=None, status=Status.MISSING), TrialOutcome.UNMEASURED, "no mpirun"),
    ],
)
def test_an_all_reduce_has_its_outcome(result: ProbeResult, outcome: TrialOutcome, words: str) -> None:
    """A run with fewer ranks, or without an end, proves nothing; wrong sums are a failure however fast."""
    one = group([A, B, C, D], LIMITS.methods.all_reduce, "ops")
    (trial,) = read(one, {"a": answer(all_reduce=result)}, LIMITS).trials
    assert trial.outcome is outcome
    assert words in trial.detail


def of(load: str, name: str, found: dict[str, tuple[Finding, ...]]) -> list[Finding]:
    return [finding for finding in found[name] if finding.check == load]


def test_every_member_has_a_finding_of_every_load() -> None:
    """Measured or not: a load that never ran is INCONCLUSIVE, not silently passed."""
    found = findings([Campaign(PLAN, load, []).measured() for load in LOADS], [A], LIMITS)
    assert [(f.check, f.verdict) for f in found["a"]] == [(load, Verdict.INCONCLUSIVE) for load in LOADS]
    assert all(f.remedy for f in found["a"])


def test_good_nodes_pass_with_their_slowest_figure() -> None:
    """One PASS for all rails, with unit, limit and evidence."""
    trials = measured(together(A, B), rails(table(395)), rails(table(391.25), table(396))).trials
    (finding,) = of("ib_write_bw", "a", dict(findings([results(LOADS[0], trials)], [A, B], LIMITS)))
    assert (finding.verdict, finding.measured) == (Verdict.PASS, Quantity(391.25, "Gb/s"))
    assert finding.expected == at_least(380, "Gb/s")
    assert finding.limits == LIMITS.digest
    assert len(finding.evidence) == 4


def test_the_bad_nodes_device_is_named_and_its_partners_pass() -> None:
    """A is slow on rail 1 with each other node, all of which are fast with each other."""
    slow, fast = rails(table(395), table(120)), rails(table(395))
    trials = [
        *measured(together(A, B), fast, slow).trials,
        *measured(together(C, D), fast, fast).trials,
        *measured(together(A, C), fast, slow).trials,
        *measured(together(B, D), fast, fast).trials,
        *measured(together(A, D), fast, slow).trials,
        *measured(together(B, C), fast, fast).trials,
    ]
    found = dict(findings([results(LOADS[0], trials)], [A, B, C, D], LIMITS))
    (bad,) = of("ib_write_bw", "a", found)
    assert (bad.verdict, bad.subject, bad.measured, bad.deterministic) == (
        *(Verdict.FAIL, "mlx5_3"),
        Quantity(120, "Gb/s"),
        True,
    )
    assert "slow with b; slow with c; slow with d" in bad.cause
    assert {f.verdict for name in "bcd" for f in found[name]} == {Verdict.PASS}


def test_a_hang_is_a_failure_that_may_not_repeat() -> None:
    """The node is named with the partner that it hung with; one confirming run precedes a quarantine."""
    hung, fast = rails(ended("x", rc=None, status=Status.TIMEOUT)), rails(table(395))
    trials = [
        *measured(together(A, B), hung, hung).trials,
        *measured(together(C, D), fast, fast).trials,
        *measured(together(A, C), hung, hung).trials,
        *measured(together(B, D), fast, fast).trials,
        *measured(together(A, D), hung, hung).trials,
        *measured(together(B, C), fast, fast).trials,
    ]
    (bad,) = of("ib_write_bw", "a", dict(findings([results(LOADS[0], trials)], [A, B, C, D], LIMITS)))
    assert (bad.verdict, bad.deterministic) == (Verdict.FAIL, False)
    assert "hung with b" in bad.cause


def test_one_failing_group_is_inconclusive_for_all() -> None:
    """Whose fault it is, is not known."""
    one = group([A, B, C, D], LIMITS.methods.all_reduce, "ops")
    trials = read(one, {"a": answer(all_reduce=ended("all_reduce", rc=1, stderr="boom"))}, LIMITS).trials
    found = findings([results(LOADS[1], trials)], [A, B, C, D], LIMITS)
    assert {f.verdict for fs in found.values() for f in fs} == {Verdict.INCONCLUSIVE}
    assert "the faulty node is unknown" in found["c"][0].cause


def test_a_device_that_no_partner_could_measure_is_inconclusive() -> None:
    """Eight rails here and one there: seven were not measured."""
    lone = replace(B, devices=("mlx5_0",))
    trials = measured(together(A, lone), rails(table(395)), rails(table(395))).trials
    found = findings([results(LOADS[0], trials)], [A, lone], LIMITS)
    assert [(f.verdict, "mlx5_3" in f.cause) for f in found["a"]] == [(Verdict.INCONCLUSIVE, True)]
    assert [f.verdict for f in found["b"]] == [Verdict.PASS]
