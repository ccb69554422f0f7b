"""Rails, the GPUs next to them, and the arguments that NCCL and perftest get for both."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from clusterctl.fleet.finding import Origin, Verdict
from clusterctl_burnin.campaign import GroupTrials, from_data, read, to_data
from clusterctl_burnin.checks.gpu_topology import TOPOLOGY
from clusterctl_burnin.checks.host_network import ADDRESSES
from clusterctl_burnin.limits.methods import PairMethod
from clusterctl_burnin.limits.reading import shipped_limits
from clusterctl_burnin.loads.model import Participant, Round, TrialOutcome
from clusterctl_burnin.loads.multi_node.all_reduce import group
from clusterctl_burnin.loads.multi_node.all_reduce_rail import rails
from clusterctl_burnin.loads.multi_node.ib_write_bw import pair
from clusterctl_burnin.loads.rank_placement import Seat, seat
from clusterctl_burnin.loads.report import findings
from clusterctl_burnin.probe import ProbeResult, Readings, Status
from clusterctl_burnin.probes.ibstat import IBSTAT
from tests.burnin.campaign_kit import measured
from tests.burnin.kit import SKU, healthy_text

LIMITS = shipped_limits("h100-sxm-ndr400")
NOW = datetime(2026, 1, 2, tzinfo=UTC)
DEVICES = ("mlx5_0", "mlx5_1")
A, B, C, D = (Participant(name, f"10.0.0.{i}", DEVICES, (0, 1), "eth0") for i, name in enumerate("abcd", 1))
GPU_PAIR = replace(LIMITS.methods.ib_write_bw, gpu_memory="dmabuf")
GPU_LIMITS = replace(LIMITS, methods=replace(LIMITS.methods, ib_write_bw=GPU_PAIR))
WITHOUT_CUDA = (Path(__file__).parent / "data/perftest/without_cuda.stderr").read_text()
"""perftest 4.5+0.17 of Debian 12, asked for --use_cuda=0: recorded by us. It exits 1."""


def result(name: str, stdout: str = "", *, rc: int = 0, stderr: str = "") -> ProbeResult:
    return ProbeResult(name, (name,), Status.OK, rc, stdout, stderr, NOW, 1.0)


def readings(*results: ProbeResult) -> Readings:
    return Readings("h", "b", Origin.REAL, NOW, NOW, {one.name: one for one in results})


def argvs(one: Round, name: str) -> dict[str, list[str]]:
    """What a member's program runs, by the probes' names."""
    call = re.fullmatch(r"main\(json\.loads\((.*)\)\)", one.commands[name].stdin.decode().splitlines()[-1])
    assert call is not None
    return {probe["name"]: probe["argv"] for probe in json.loads(json.loads(call[1]))["probes"]}


def variables(argv: list[str]) -> dict[str, str]:
    return dict(argv[at + 1].split("=", 1) for at, word in enumerate(argv) if word == "-x")


def table(busbw: float, ranks: int) -> str:
    heads = "".join(f"#  Rank {i} Group 0 Pid 1 on h device 0 [0x1b] H100\n" for i in range(ranks))
    row = f" 1073741824 268435456 float sum -1 100 300 {busbw} 0 100 300 {busbw} 0\n"
    return f"{heads}{row}# Out of bounds values : 0 OK\n"


def test_a_seat_is_read_from_the_checks_answers() -> None:
    """Each adapter with a GPU of its own below its switch; the interface by its address."""
    healthy = [result(probe.name, healthy_text(probe.name)) for probe in (IBSTAT, TOPOLOGY, ADDRESSES)]
    shown = json.loads(healthy_text(ADDRESSES.name))
    name, address = next(
        (link["ifname"], a["local"])
        for link in shown
        for a in link.get("addr_info", ())
        if a.get("scope") == "global" and a["family"] == "inet"
    )
    found = seat(readings(*healthy), address, SKU)
    assert found.devices == ("mlx5_0", "mlx5_1")
    assert len(set(found.gpus)) == len(found.devices)
    assert None not in found.gpus
    assert found.interface == name


def test_missing_values_are_left_out() -> None:
    """No answer, no rank placement: each load reports what it lacks."""
    assert seat(readings(), "10.0.0.1", SKU) == Seat((), (), "")
    only = readings(result(IBSTAT.name, healthy_text(IBSTAT.name)))
    assert set(seat(only, "10.0.0.1", SKU).gpus) == {None}


def test_nccl_gets_exactly_the_adapters_and_the_interface() -> None:
    """The names with a leading =, lest mlx5_1 be mlx5_10, too; warnings are kept."""
    (argv,) = argvs(group([A, B, C, D], LIMITS.methods.all_reduce, "ops"), "a").values()
    message = variables(argv)
    assert message == {"NCCL_DEBUG": "WARN", "NCCL_IB_HCA": "=mlx5_0,mlx5_1", "NCCL_SOCKET_IFNAME": "=eth0"}
    assert argv.index("-x") < argv.index("all_reduce_perf")


def test_two_nodes_are_held_to_rings() -> None:
    """NVLSTree over two nodes measures nothing of the fabric."""
    (argv,) = argvs(group([A, B], LIMITS.methods.all_reduce, "ops"), "a").values()
    assert variables(argv)["NCCL_ALGO"] == "Ring"


def test_members_that_differ_get_their_own_arguments() -> None:
    """One application context per member, and as many ranks in all."""
    odd = replace(B, devices=("mlx5_0", "mlx5_7"))
    (argv,) = argvs(group([A, odd, C], LIMITS.methods.all_reduce, "ops"), "a").values()
    contexts = " ".join(argv).split(" : ")
    assert ["=mlx5_0,mlx5_7" in context for context in contexts] == [False, True, False]
    assert all("-np 8 " in context and "all_reduce_perf" in context for context in contexts)


def test_each_rail_sums_by_itself_with_the_gpu_next_to_it() -> None:
    """One rank a node, one adapter, the nearest GPU; the others are not seen."""
    one = rails([A, B, C, D], LIMITS.methods.all_reduce_rail, "", "ops")
    found = argvs(one, "a")
    assert list(found) == ["all_reduce_rail0", "all_reduce_rail1"]
    assert {(v["NCCL_IB_HCA"], v["CUDA_VISIBLE_DEVICES"]) for v in map(variables, found.values())} == {
        ("=mlx5_0", "0"),
        ("=mlx5_1", "1"),
    }
    assert all(argv[argv.index("-np") + 1] == "4" for argv in found.values())


def test_a_slow_rail_is_separated_from_the_others() -> None:
    """Its devices are in its trial, with what each adapter carried."""
    one = rails([A, B, C, D], LIMITS.methods.all_reduce_rail, "", "ops")
    reported = readings(result("all_reduce_rail0", table(46, 4)), result("all_reduce_rail1", table(20, 4)))
    first, second = read(one, {"a": reported}, LIMITS).trials
    assert (first.outcome, second.outcome, second.rail) == (TrialOutcome.PASSED, TrialOutcome.SLOW, 1)
    assert second.lane == dict.fromkeys("abcd", "mlx5_1")
    assert "each adapter carries 20 GB/s" in second.detail


@pytest.mark.parametrize(("ranks", "message"), [(3, TrialOutcome.UNMEASURED), (4, TrialOutcome.PASSED)])
def test_a_rail_with_fewer_ranks_proves_nothing(ranks: int, message: TrialOutcome) -> None:
    """A table of three nodes is none of four."""
    one = rails([A, B, C, D], LIMITS.methods.all_reduce_rail, "", "ops")
    reported = readings(*(result(f"all_reduce_rail{rail}", table(46, ranks)) for rail in (0, 1)))
    assert {trial.outcome for trial in read(one, {"a": reported}, LIMITS).trials} == {message}


def test_a_rail_without_a_known_gpu_is_not_measured() -> None:
    """Any other GPU's figures would be those of the way to it."""
    lost = replace(B, gpus=(None, 1))
    one = rails([A, lost], LIMITS.methods.all_reduce_rail, "", "ops")
    assert list(argvs(one, "a")) == ["all_reduce_rail1"]
    first, second = read(one, {"a": readings(result("all_reduce_rail1", table(46, 2)))}, LIMITS).trials
    assert (first.outcome, second.outcome) == (TrialOutcome.UNMEASURED, TrialOutcome.PASSED)
    assert "adapter of b" in first.detail
    assert "topo -m" in first.remedy


def test_nccls_own_warning_is_the_reason() -> None:
    """The finding has more than mpirun's advice."""
    one = group([A, B, C, D], LIMITS.methods.all_reduce, "ops")
    warned = "h:1:2 [0] misc/ibvwrap.cc:300 NCCL WARN Call to ibv_modify_qp failed with error No such device\n"
    failed = result("all_reduce", warned, rc=3, stderr="Primary job terminated normally\n")
    (trial,) = read(one, {"a": readings(failed)}, LIMITS).trials
    assert (trial.outcome, trial.detail) == (
        TrialOutcome.FAILED,
        "Call to ibv_modify_qp failed with error No such device",
    )


@pytest.mark.parametrize(
    ("memory", "words"),
    [("none", []), ("peermem", ["--use_cuda=1"]), ("dmabuf", ["--use_cuda=1", "--use_cuda_dmabuf"])],
)
def test_gpu_memory_is_that_of_the_nearest_gpu(memory: str, words: list[str]) -> None:
    """Perftest wants the GPU before the way to it."""
    method = TypeAdapter(PairMethod).validate_python({**asdict(LIMITS.methods.ib_write_bw), "gpu_memory": memory})
    argv = argvs(pair(A, B, method, "ops"), "b")["ib_write_bw_rail1"]
    assert [word for word in argv if word.startswith("--use")] == words


def test_a_perftest_without_cuda_measures_nothing_and_names_the_package() -> None:
    """No node is slow for it; the finding's remedy is the one that helps."""
    one = pair(A, B, GPU_PAIR, "ops")
    names = ("ib_write_bw_rail0", "ib_write_bw_rail1")
    refused = readings(*(result(name, "Usage:\n", rc=1, stderr=WITHOUT_CUDA) for name in names))
    trials = read(one, {"a": refused, "b": refused}, GPU_LIMITS).trials
    assert {trial.outcome for trial in trials} == {TrialOutcome.UNMEASURED}
    found = findings([measured("ib_write_bw", trials)], [A, B], GPU_LIMITS)["a"]
    assert {finding.verdict for finding in found} == {Verdict.INCONCLUSIVE}
    assert all("built with CUDA" in finding.remedy for finding in found)


def test_newer_perftests_have_another_option() -> None:
    """Those know the option and refuse the memory: printed to stdout (perftest_parameters.c)."""
    one = pair(A, B, GPU_PAIR, "ops")
    refused = readings(
        *(result(f"ib_write_bw_rail{rail}", " Unsupported memory type\n", rc=1) for rail in (0, 1)),
    )
    trials = read(one, {"a": refused, "b": refused}, GPU_LIMITS).trials
    assert {trial.outcome for trial in trials} == {TrialOutcome.UNMEASURED}


def test_a_trials_remedy_outlives_a_killed_run() -> None:
    """Written and read; of a journal without it, none."""
    one = rails([A, replace(B, gpus=(None, None))], LIMITS.methods.all_reduce_rail, "", "ops")
    trials = read(one, {"a": readings()}, LIMITS).trials
    event = GroupTrials(1, ("a", "b"), trials)
    assert from_data(to_data(event)) == event
    older = to_data(event)
    for trial in older["trials"]:
        del trial["remedy"]
    again = from_data(older)
    assert isinstance(again, GroupTrials)
    assert {trial.remedy for trial in again.trials} == {""}
