"""Which cause is chosen: the first error before its cascade, the host of a missing rank, and what stays unknown."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from clusterctl.fleet.blame import Certainty, Failure, Layer
from clusterctl.formats.flight_recorder import GroupState, RankRecord
from clusterctl.formats.job_lines import TimeReader
from clusterctl.jobs.attribute import attribute
from clusterctl.jobs.attribution import Attribution, JobAction
from clusterctl.jobs.evidence import (
    BmcEvent,
    EarlierFailure,
    JobEvidence,
    LinkErrors,
    Observation,
    Progress,
    RankProcess,
    SchedulerFacts,
    Source,
    Stack,
)
from clusterctl.jobs.kernel_lines import kernel_meaning
from clusterctl.jobs.scan import LogFile, scan
from clusterctl.operations.line_explanation import explain

T0 = datetime(2026, 11, 1, 12, tzinfo=UTC)
RANKS = {rank: f"n{rank // 2}" for rank in range(8)}
"""Eight ranks on four hosts."""
REMOTE = "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."
LOST = "NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=python3, GPU has fallen off the bus."
NFS = "nfs: server 10.0.0.9 not responding, still trying"
PORT = "transport/net_ib.cc:93 NCCL WARN NET/IB : mlx5_2:1 Got async event : port error"
NAN = "AssertionError: Rank {}: found NaN in local forward loss calculation. Device: 2,"
ILLEGAL = "RuntimeError: CUDA error: an illegal memory access was encountered"
PAIR = "NCCL WARN NET/IB : Got completion from peer {}<4711> with status=12 opcode=0 len=0 vendor err 129 (Recv)"
WATCHDOG = (
    "[PG ID 0 PG GUID 0(default_pg) Rank {0}] failure detected by watchdog at work sequence id: 9 PG status: "
    "last enqueued work: {1}, last completed work: 8"
)
ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
KILLED = "torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 1 (pid: 7) of binary: x"
LIMIT = "slurmstepd: error: *** JOB 7 ON n0 CANCELLED AT 2026-11-01T12:00:00 DUE TO TIME LIMIT ***"


def job(host: str, second: float, line: str, rank: int | None = None) -> Observation:
    meaning = explain(line)
    assert meaning is not None, line
    at = T0 + timedelta(seconds=second)
    return Observation(source=Source.JOB, host=host, rank=rank, at=at, text=line, meaning=meaning)


def kernel(host: str, second: float, line: str) -> Observation:
    meaning = kernel_meaning(line)
    assert meaning is not None, line
    at = T0 + timedelta(seconds=second)
    return Observation(source=Source.KERNEL, host=host, at=at, text=line, meaning=meaning)


def judged(*observations: Observation, **more: object) -> Attribution:
    return attribute(JobEvidence(job="7", observations=observations, ranks=RANKS, **more))  # type: ignore[arg-type]


def hosts(found: Attribution) -> list[str]:
    return sorted({suspect.host for suspect in found.cause.suspects})


def test_a_lost_gpu_comes_before_the_aborts_of_its_peers() -> None:
    """The peers' logs are earlier and louder; the Xid is the cause."""
    peers = [job(f"n{n}", n, REMOTE, rank=2 * n) for n in range(3)]
    found = judged(*peers, kernel("n3", 4, LOST))
    assert (found.cause.failure, found.cause.layer, found.cause.certainty) == (
        Failure.CRASH,
        Layer.HARDWARE,
        Certainty.PROVEN,
    )
    assert [(one.host, one.part) for one in found.cause.suspects] == [("n3", "gpu 0000:3b:00.0")]
    assert found.consequences == {"nccl_remote": 3}
    assert found.cause.action is JobAction.RESTART_WITHOUT


def test_the_drivers_verdict_outranks_the_table() -> None:
    """Xid 154 with an Xid 46: the action of the driver is the remedy; the two are one cause."""
    found = judged(
        kernel("n1", 0, "NVRM: Xid (PCI:0000:3b:00): 46, pid=7, name=python3"),
        kernel(
            "n1",
            1,
            "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
        ),
    )
    assert found.cause.remedy == "reboot the node"
    assert "154" in found.cause.cause


def test_an_xid_45_is_never_the_cause() -> None:
    """Torn-down channels follow from what the kernel has logged before, or from the end of a program."""
    found = judged(
        kernel("n1", 0, "NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=python3, Ch 00000001"),
        job("n0", 2, "KeyError: 'tokens'", rank=0),
    )
    assert (found.cause.rule, found.cause.layer) == ("exception", Layer.APPLICATION)


def test_page_faults_of_several_processes_on_one_gpu_blame_it() -> None:
    fault = "NVRM: Xid (PCI:0000:3b:00): 31, pid={}, name=python3, MMU Fault: ENGINE GRAPHICS"
    found = judged(kernel("n1", 0, fault.format(7)), kernel("n1", 1, fault.format(8)))
    assert (found.cause.layer, hosts(found)) == (Layer.HARDWARE, ["n1"])
    one = judged(kernel("n1", 0, fault.format(7)))
    assert one.cause.layer is Layer.APPLICATION


def test_storage_that_fails_on_many_hosts_drains_none() -> None:
    found = judged(*(kernel(f"n{n}", n, NFS) for n in range(4)), job("n0", 30, REMOTE))
    assert (found.cause.rule, found.cause.certainty) == ("shared_storage", Certainty.PROVEN)
    assert found.cause.action is JobAction.WAIT
    assert found.cause.suspects == ()


def test_storage_that_fails_on_one_host_suspects_its_mount() -> None:
    found = judged(kernel("n2", 0, NFS))
    assert (found.cause.rule, found.cause.certainty, hosts(found)) == ("storage_of_one_host", Certainty.LIKELY, ["n2"])


def test_hung_processes_in_a_file_systems_client_blame_the_storage() -> None:
    """Their stack shows what they wait for; on several hosts no host is to blame, and without such a frame nothing is."""
    task, frame = "INFO: task python3:7 blocked for more than 120 seconds.", " rpc_wait_bit_killable+0x24/0xa0 [sunrpc]"
    one = judged(kernel("n1", 0, task), kernel("n1", 0, frame)).cause
    assert (one.rule, one.failure, one.layer, one.action) == (
        "hung_task", Failure.HANG, Layer.STORAGE, JobAction.RESTART_WITHOUT,
    )  # fmt: skip
    assert [suspect.host for suspect in one.suspects] == ["n1"]
    both = judged(*(kernel(host, 0, line) for host in ("n1", "n2") for line in (task, frame))).cause
    assert (both.layer, both.action, both.suspects) == (Layer.STORAGE, JobAction.WAIT, ())
    assert judged(kernel("n1", 0, task)).cause.layer is Layer.UNKNOWN
    assert judged(kernel("n1", 0, task), kernel("n2", 0, frame)).cause.layer is Layer.UNKNOWN
    assert judged(kernel("n1", 0, task), kernel("n1", 600, frame)).cause.layer is Layer.UNKNOWN


def test_a_broken_checkpoint_is_the_file_not_the_program() -> None:
    """What the program raises because of the file comes after it."""
    file = "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"
    found = judged(job("n0", 0, file, rank=0), job("n0", 0, "KeyError: 'x'", rank=0)).cause
    assert (found.rule, found.layer, found.action, found.suspects) == ("broken_file", Layer.DATA, JobAction.STOP, ())


def test_no_number_at_one_step_on_several_hosts_is_the_program_or_its_data() -> None:
    found = judged(*(job(f"n{n}", n, NAN.format(2 * n), rank=2 * n) for n in range(3)), progress=Progress(iteration=41))
    assert (found.cause.layer, found.cause.certainty, found.cause.iteration) == (
        Layer.APPLICATION,
        Certainty.LIKELY,
        42,
    )
    assert found.cause.action is JobAction.STOP


def test_no_number_on_one_host_is_silent_corruption_once_it_recurs_there() -> None:
    """Once it is open; a second time on the same host it is likely; at the same step elsewhere the program, proven."""
    nan, progress = job("n2", 0, NAN.format(5), rank=5), Progress(iteration=41)
    once = judged(nan, progress=progress)
    assert (once.cause.layer, once.cause.certainty, hosts(once)) == (Layer.HARDWARE, Certainty.UNKNOWN, ["n2"])
    here = EarlierFailure(job="6", rule="nan", hosts=("n2",), iteration=7)
    again = judged(nan, progress=progress, earlier=(here,))
    assert (again.cause.layer, again.cause.certainty) == (Layer.HARDWARE, Certainty.LIKELY)
    there = EarlierFailure(job="6", rule="nan", hosts=("n9",), iteration=42)
    elsewhere = judged(nan, progress=progress, earlier=(there,))
    assert (elsewhere.cause.layer, elsewhere.cause.certainty) == (Layer.APPLICATION, Certainty.PROVEN)


NAN_AND_ABORT = """\
0: iteration       12/ 20 | consumed samples: 1 | elapsed time per iteration (ms): 26.2 |
0: Loss is nan, stopping training
1: Loss is nan, stopping training
0: terminate called without an active exception
srun: error: node001: task 0: Aborted
srun: error: node008: task 1: Exited with exit code 1
"""
"""PyTorch 2.13, one of whose ranks aborts at its exit: recorded with `NaN in the data` of the tests on lab hosts."""


def nan_of(log: str, *earlier: EarlierFailure) -> Attribution:
    observed = scan([(0, log.encode())], LogFile(name="a", host="", source=Source.JOB), TimeReader(T0))
    facts = SchedulerFacts(state="FAILED", nodes=("node001", "node008"))
    return attribute(
        JobEvidence(observations=observed, scheduler=facts, earlier=earlier, progress=Progress(iteration=12))
    )


def test_no_number_on_ranks_of_which_one_ends_by_a_signal() -> None:
    """Srun names the host of each task, however it ended: both report it, so that it is the program or its data."""
    found = nan_of(NAN_AND_ABORT)
    assert (found.cause.layer, found.cause.certainty) == (Layer.APPLICATION, Certainty.LIKELY)
    assert found.cause.because == ("on 2 hosts: node001, node008",)


@pytest.mark.parametrize("ended", ["task 0: Aborted", "task 1: Exited with exit code 1"])
def test_no_number_on_a_rank_of_an_unknown_host_blames_no_other_host(ended: str) -> None:
    """Srun has reported one task alone: the host that is known is not the only one."""
    found = nan_of("".join(line for line in NAN_AND_ABORT.splitlines(keepends=True) if ended not in line))
    assert (found.cause.layer, found.cause.certainty) == (Layer.UNKNOWN, Certainty.UNKNOWN)
    assert found.cause.because == ("of 2 ranks, whose hosts are not known",)


def test_no_number_in_an_earlier_attempt_of_which_no_host_is_known_proves_nothing() -> None:
    earlier = EarlierFailure(job="6", rule="nan", hosts=(), iteration=13)
    assert nan_of(NAN_AND_ABORT, earlier).cause.certainty is Certainty.LIKELY


def test_an_illegal_access_moves_or_stays() -> None:
    """On several hosts it is the program's; on the host that had it before, the host's; once, it is tried elsewhere."""
    several = judged(*(job(f"n{n}", n, ILLEGAL, rank=2 * n) for n in range(2)))
    assert (several.cause.layer, several.cause.action) == (Layer.APPLICATION, JobAction.STOP)
    past = EarlierFailure(job="6", rule="cuda_illegal_access", hosts=("n1",))
    stays = judged(job("n1", 0, ILLEGAL, rank=2), earlier=(past,))
    assert (stays.cause.layer, hosts(stays)) == (Layer.HARDWARE, ["n1"])
    once = judged(job("n1", 0, ILLEGAL, rank=2))
    assert (once.cause.layer, once.cause.action) == (Layer.APPLICATION, JobAction.RESTART)


def test_a_lost_node_is_proven_by_its_bmc() -> None:
    facts = SchedulerFacts(state="NODE_FAIL", failed_nodes=("n2",), ended=T0)
    alone = judged(job("n0", 0, REMOTE), scheduler=facts)
    assert (alone.cause.rule, alone.cause.certainty, hosts(alone)) == ("lost_node", Certainty.LIKELY, ["n2"])
    event = BmcEvent(host="n2", at=T0 - timedelta(minutes=6), text="PSU 1: input lost")
    with_bmc = judged(job("n0", 0, REMOTE), scheduler=facts, bmc=(event,))
    assert with_bmc.cause.certainty is Certainty.PROVEN
    assert "PSU 1: input lost" in with_bmc.cause.because[0]


def test_the_host_that_failed_pairs_share_is_the_suspect() -> None:
    """Three pairs with n3 in common; one pair alone suspects both of its ends."""
    addresses = {f"10.0.0.{n}": f"n{n}" for n in range(4)}
    three = judged(*(job(f"n{n}", n, PAIR.format("10.0.0.3")) for n in range(3)), addresses=addresses)
    assert (three.cause.rule, three.cause.layer, hosts(three)) == ("host_of_failed_pairs", Layer.FABRIC, ["n3"])
    risen = LinkErrors(host="n3", device="mlx5_2", counter="link_downed", increase=2)
    one = judged(job("n0", 0, PAIR.format("10.0.0.3")), addresses=addresses, links=(risen,))
    assert (one.cause.rule, hosts(one)) == ("failed_pair", ["n0", "n3"])
    assert "link_downed of n3 mlx5_2 rose by 2" in one.cause.because


def test_a_pair_with_a_dead_end_follows_from_its_death() -> None:
    addresses = {"10.0.0.3": "n3"}
    found = judged(job("n0", 0, PAIR.format("10.0.0.3")), kernel("n3", 9, LOST), addresses=addresses)
    assert (found.cause.rule, hosts(found), found.others) == ("broken_part", ["n3"], ())


def test_links_of_many_hosts_at_once_are_what_they_share() -> None:
    found = judged(*(job(f"n{n}", n, PORT) for n in range(4)))
    assert (found.cause.rule, found.cause.action, found.cause.suspects) == ("shared_fabric", JobAction.WAIT, ())
    one = judged(job("n1", 0, PORT))
    assert (one.cause.rule, hosts(one)) == ("broken_part", ["n1"])


def test_an_exception_of_all_ranks_is_proven_to_be_the_programs() -> None:
    every = judged(*(job(RANKS[rank], rank / 10, "KeyError: 'tokens'", rank=rank) for rank in RANKS))
    assert (every.cause.certainty, every.cause.cause) == (Certainty.PROVEN, "the program raised KeyError")
    one = judged(job("n0", 0, "KeyError: 'tokens'", rank=0), job("n1", 3, REMOTE, rank=2))
    assert (one.cause.layer, one.cause.certainty) == (Layer.APPLICATION, Certainty.LIKELY)


@pytest.mark.parametrize(
    ("line", "rule", "layer", "action"),
    [
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
            "memory_used_up",
            Layer.APPLICATION,
            JobAction.STOP,
        ),
        (
            "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error.",
            "data_loader",
            Layer.DATA,
            JobAction.STOP,
        ),
        (
            "Forward order differs across ranks: rank 0 is all-gathering",
            "framework",
            Layer.FRAMEWORK,
            JobAction.RESTART,
        ),
        ("OSError: [Errno 28] No space left on device", "storage_full", Layer.STORAGE, JobAction.STOP),
    ],
)
def test_causes_that_one_line_names(line: str, rule: str, layer: Layer, action: JobAction) -> None:
    found = judged(job("n1", 0, line, rank=2), job("n0", 1, REMOTE, rank=0))
    assert (found.cause.rule, found.cause.layer, found.cause.action) == (rule, layer, action)


def test_a_message_of_lustre_is_no_exception() -> None:
    """Lines of Lustre and its network look like one: they blame the storage in a job's log, too."""
    for line in (
        "LNetError: 2345:0:(o2iblnd_cb.c:3380:kiblnd_check_txs_locked()) Timed out tx: active_txs, 0 seconds",
        "LustreError: 167-0: lfs-MDT0000-mdc-ffff: This client was evicted by lfs-MDT0000",
    ):
        found = explain(line)
        assert found is not None
        assert found.blame.layer is Layer.STORAGE


def test_a_port_that_is_taken_is_tried_again() -> None:
    line = "[E socket.cpp:435] [c10d] The server socket has failed to listen on any local network address."
    found = judged(job("n1", 0, line, rank=0)).cause
    assert (found.layer, found.action) == (Layer.APPLICATION, JobAction.RESTART)


def test_the_framework_is_restarted_once() -> None:
    line = "Forward order differs across ranks: rank 0 is all-gathering"
    past = EarlierFailure(job="6", rule="forward_order")
    assert judged(job("n1", 0, line), earlier=(past,)).cause.action is JobAction.STOP


PACKAGE = "/opt/conda/lib/python3.10/site-packages"
SEED = "TypeError: Accelerator.__init__() got an unexpected keyword argument 'use_seedable_sampler'"
"""hiyouga/LlamaFactory#2552."""


def raised(line: str, file: str) -> Attribution:
    """Return the judgement of an exception whose last frame is in `file`."""
    text = f'Traceback (most recent call last):\n  File "{file}", line 7, in f\n    g()\n{line}\n'
    observed = scan([(0, text.encode())], LogFile(name="a", host="", source=Source.JOB), TimeReader(T0))
    return attribute(JobEvidence(observations=observed, scheduler=SchedulerFacts(state="FAILED")))


@pytest.mark.parametrize(
    ("line", "file"),
    [
        (SEED, f"{PACKAGE}/transformers/trainer.py"),
        ("ImportError: cannot import name 'Store' from 'torch.distributed'", f"{PACKAGE}/torch/distributed/run.py"),
        ("AttributeError: module 'deepspeed.comm' has no attribute 'P'", f"{PACKAGE}/deepspeed/moe/sharded_moe.py"),
        (
            "TypeError:     __call__() missing 1 required positional argument: 'value'",
            f"{PACKAGE}/deepspeed/runtime/x.py",
        ),
    ],
)
def test_packages_that_do_not_fit_are_not_the_programs_fault(line: str, file: str) -> None:
    """An installed package calls another one wrongly: the next attempt would fail, too, so it asks."""
    found = raised(line, file).cause
    assert (found.rule, found.layer, found.action) == ("framework", Layer.FRAMEWORK, JobAction.STOP)
    assert file[-20:] in found.cause


@pytest.mark.parametrize(
    ("line", "file"),
    [
        (SEED, "/home/ada/train.py"),
        ("TypeError: forward() got an unexpected keyword argument 'x'", f"{PACKAGE}/torch/nn/modules/module.py"),
        (
            "TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'lrr'",
            f"{PACKAGE}/transformers/hf_argparser.py",
        ),
        ("AttributeError: 'NoneType' object has no attribute 'shape'", f"{PACKAGE}/transformers/trainer.py"),
    ],
)
def test_what_a_program_passes_on_is_its_own(line: str, file: str) -> None:
    """The program called it, or a package passes on what the program, its data or its settings named."""
    assert raised(line, file).cause.layer is Layer.APPLICATION


def test_an_error_without_its_traceback_blames_no_layer() -> None:
    """Only the last frame shows whether the program or a library raised it: the run asks, and blames neither."""
    line = "AttributeError: 'DeepSpeedZeRoOffload' object has no attribute '_register_hooks_recursively'"
    found = judged(job("n1", 0, line, rank=2)).cause
    assert (found.rule, found.layer, found.certainty) == ("exception", Layer.UNKNOWN, Certainty.UNKNOWN)
    assert found.action is JobAction.STOP
    assert raised(line, "/home/ada/train.py").cause.layer is Layer.APPLICATION


def test_software_that_fails_on_most_hosts_blames_none() -> None:
    """A limit of locked memory that all hosts have: without one of them the next attempt would fail, too."""
    line = "misc/ibvwrap.cc:190 NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory"
    everywhere = judged(*(job(f"n{n}", n, line, rank=2 * n) for n in range(4))).cause
    assert (everywhere.rule, everywhere.suspects, everywhere.action) == ("shared_software", (), JobAction.STOP)
    one = judged(job("n2", 0, line, rank=4), job("n1", 1, REMOTE, rank=2))
    assert (one.cause.rule, hosts(one)) == ("broken_part", ["n2"])


def test_the_node_on_which_a_step_was_not_launched_is_the_suspect() -> None:
    line = "srun: error: Task launch for StepId=36.0 failed on node n3: Job credential expired"
    found = judged(job("", 0, line))
    assert (found.cause.layer, hosts(found)) == (Layer.SYSTEM_SOFTWARE, ["n3"])


def test_a_full_memory_of_a_host() -> None:
    killed = "Memory cgroup out of memory: Killed process 7 (python3) total-vm:1kB"
    found = judged(kernel("n1", 0, killed), job("n1", 1, KILLED))
    assert (found.cause.rule, found.cause.layer, hosts(found)) == ("host_memory", Layer.APPLICATION, ["n1"])
    assert judged(scheduler=SchedulerFacts(state="OUT_OF_MEMORY")).cause.layer is Layer.APPLICATION


def test_an_order_is_no_fault_and_its_noise_no_cause() -> None:
    """Processes that are killed log errors; what came before the order still counts."""
    found = judged(job("n0", 0, LIMIT), job("n1", 20, "RuntimeError: interrupted", rank=2))
    assert (found.cause.failure, found.cause.action) == (Failure.ENDED, JobAction.NOTHING)
    before = judged(kernel("n1", -120, LOST), job("n0", 0, LIMIT))
    assert before.cause.layer is Layer.HARDWARE


def test_a_job_that_went_on_did_not_fail_with_it() -> None:
    """A lost GPU of a spare, an hour before the job's last step."""
    last = Progress(iteration=900, at=T0 + timedelta(hours=1))
    found = judged(kernel("n1", 0, LOST), job("n0", 3610, "KeyError: 'x'", rank=0), progress=last)
    assert found.cause.rule == "exception"


def test_the_rank_that_does_not_report_is_late() -> None:
    """Seven report a time-out: the silent one is the suspect, not they."""
    found = judged(*(job(RANKS[rank], rank, WATCHDOG.format(rank, 9), rank=rank) for rank in RANKS if rank != 5))
    assert (found.cause.rule, found.cause.failure) == ("silent_rank", Failure.HANG)
    assert [(one.rank, one.host) for one in found.cause.suspects] == [(5, "n2")]


def test_the_rank_that_came_least_far_is_late() -> None:
    found = judged(*(job(RANKS[rank], rank, WATCHDOG.format(rank, 8 if rank == 3 else 9), rank=rank) for rank in RANKS))
    assert [(one.rank, one.host) for one in found.cause.suspects] == [(3, "n1")]


def test_a_time_out_without_a_late_rank_stays_unknown() -> None:
    found = judged(*(job(RANKS[rank], rank, WATCHDOG.format(rank, 9), rank=rank) for rank in RANKS))
    assert (found.cause.rule, found.cause.certainty, found.cause.action) == (
        "unexplained_hang",
        Certainty.UNKNOWN,
        JobAction.INVESTIGATE,
    )


def record(rank: int, **sequences: int) -> RankRecord:
    groups = tuple(
        GroupState(group=name, members=4, sequence=value, completed=value - 1, created=100.0 + (name == "dp"))
        for name, value in sequences.items()
    )
    return RankRecord(rank=rank, version="2.10", groups=groups)


def test_dumps_name_the_late_rank_of_the_group_that_waits_longest() -> None:
    """Two groups wait for each other: the one whose operation is oldest is where it began."""
    records = [record(rank, tp=9, dp=5) for rank in range(4)]
    records[2] = record(2, tp=8, dp=5)
    records[3] = record(3, tp=9, dp=4)
    found = judged(records=tuple(records))
    assert [(one.rank, one.host) for one in found.cause.suspects] == [(2, "n1")]


def test_a_group_that_waits_as_a_whole_has_no_late_rank() -> None:
    found = judged(records=tuple(record(rank, tp=9) for rank in range(4)))
    assert found.cause.rule == "no_evidence"


def test_the_stack_of_the_late_rank_blames_a_layer() -> None:
    stuck = Stack(rank=6, host="n3", frames=("all_reduce (a.py:1)",), kernel=("nfs_wait_bit_killable", "rpc_execute"))
    rest = tuple(Stack(rank=rank, host=RANKS[rank], frames=("wait (b.py:2)",)) for rank in range(6))
    found = judged(stacks=(*rest, stuck))
    assert (found.cause.rule, found.cause.layer, hosts(found)) == ("odd_stack", Layer.STORAGE, ["n3"])


def test_ranks_of_several_hosts_that_wait_for_a_file_system_blame_the_storage_and_no_host() -> None:
    """Their stacks in the kernel show it minutes before the kernel reports hung tasks."""
    stuck = [
        Stack(rank=rank, host=RANKS[rank], frames=(), kernel=("request_wait_answer", "fuse_do_open")) for rank in (1, 6)
    ]
    rest = [Stack(rank=rank, host=RANKS[rank], frames=(), kernel=("ep_poll",)) for rank in (0, 2, 3, 4, 5, 7)]
    found = judged(stacks=(*rest, *stuck))
    assert (found.cause.rule, found.cause.layer, hosts(found)) == ("waiting_for_storage", Layer.STORAGE, [])
    assert found.cause.action is JobAction.WAIT
    alone = judged(stacks=(rest[0], stuck[1]))
    assert (alone.cause.rule, alone.cause.layer, hosts(alone)) == ("waiting_for_storage", Layer.STORAGE, ["n3"])
    assert alone.cause.action is JobAction.RESTART_WITHOUT


@pytest.mark.parametrize(
    "line",
    [
        "mlx5_core 0000:5d:00.0 mlx5_3: Port: 1 Link DOWN",
        "mlx5_core 0000:ca:00.0 ens1f0np0: Link down",
    ],
)
def test_a_link_that_went_down_in_the_kernels_log_blames_its_host(line: str) -> None:
    """The exceptions and time-outs of the ranks follow from it."""
    found = judged(kernel("n2", 0, line), *(job(host, 30, OWN_ERROR, rank=rank) for rank, host in RANKS.items()))
    assert (found.cause.layer, found.cause.certainty, hosts(found)) == (Layer.FABRIC, Certainty.LIKELY, ["n2"])
    up = "mlx5_core 0000:5d:00.0 mlx5_3: Port: 1 Link ACTIVE"
    assert kernel_meaning(up) is None


def test_a_gpu_error_of_an_unknown_host_is_that_of_the_kernels_log() -> None:
    """The job's log comes first, and names no host: the host of the equally sure error is the suspect; of two, none."""
    ecc = Observation(source=Source.JOB, text=ECC, meaning=job("", 0, ECC).meaning, at=T0)
    xid = "NVRM: Xid (PCI:0000:3b:00): 64, pid='<unknown>', name=<unknown>, Row Remapper: Failed to remap row"
    found = judged(ecc, kernel("n2", 9, xid))
    assert (found.cause.layer, found.cause.certainty, hosts(found)) == (Layer.HARDWARE, Certainty.PROVEN, ["n2"])
    two = judged(ecc, kernel("n2", 9, xid), kernel("n3", 9, xid))
    assert hosts(two) == [""]


def test_srun_names_the_host_of_a_task() -> None:
    """By the label of the line, not by its rank: a task may start several ranks."""
    lines = (
        "1: [rank9]: OSError: [Errno 5] Input/output error: '/d/x'\nsrun: error: n1: tasks 0,3-4: Exited with exit code 1\n"
        "srun: error: n2: task 1: Exited with exit code 1\n"
    )
    log = LogFile(name="a", host="", source=Source.JOB)
    observed = scan([(0, lines.encode())], log, TimeReader(T0))
    found = attribute(JobEvidence(observations=observed, scheduler=SchedulerFacts(state="FAILED")))
    assert (found.cause.rule, [(one.host, one.rank) for one in found.cause.suspects]) == (
        "storage_of_one_host",
        [("n2", 9)],
    )


LOADER = """\
1: [rank1]: Traceback (most recent call last):
1: [rank1]:   File "/x/rank.py", line 23, in fault
1: [rank1]:   File "/x/torch/torch/utils/data/dataloader.py", line 1291, in _try_get_data
1: [rank1]:   File "/x/torch/torch/multiprocessing/reductions.py", line 538, in rebuild_storage_fd
1: [rank1]:   File "/usr/lib/python3.11/multiprocessing/connection.py", line 382, in _recv
1: [rank1]:     raise EOFError
1: [rank1]: EOFError
"""
"""PyTorch 2.13, whose worker was killed while a batch was on its way: recorded with `Data loader killed` of the tests on lab hosts."""


def test_a_worker_that_dies_with_a_batch_on_its_way_is_the_data_loaders() -> None:
    """The exception has no text, and is raised in Python's own library: the last frame that is not of it counts."""
    observed = scan([(0, LOADER.encode())], LogFile(name="a", host="", source=Source.JOB), TimeReader(T0))
    found = attribute(JobEvidence(observations=observed, scheduler=SchedulerFacts(state="FAILED")))
    assert (found.cause.rule, found.cause.layer, found.cause.certainty) == ("data_loader", Layer.DATA, Certainty.LIKELY)


def test_a_suspect_that_was_blamed_before_is_likely() -> None:
    past = EarlierFailure(job="6", rule="watchdog_status", hosts=("n2",))
    nan = job("n2", 0, NAN.format(5), rank=5)
    found = judged(nan, earlier=(past,))
    assert (found.cause.certainty, "job 6" in found.cause.because[-1]) == (Certainty.LIKELY, True)


def test_without_evidence_nothing_is_blamed() -> None:
    """What could not be read is named: it is never taken for healthy."""
    found = judged(scheduler=SchedulerFacts(state="FAILED", exit_code=1), missing=("kernel log of n1: no answer",))
    assert (found.cause.layer, found.cause.certainty) == (Layer.UNKNOWN, Certainty.UNKNOWN)
    assert found.unmeasured == ("kernel log of n1: no answer",)
    assert found.cause.cause.endswith("(state FAILED, exit code 1); not read: kernel log of n1: no answer")
    done = judged(scheduler=SchedulerFacts(state="COMPLETED"))
    assert (done.cause.rule, done.cause.failure) == ("completed", Failure.ENDED)


def test_a_job_that_runs_has_not_failed() -> None:
    """Asked about while it runs, and nothing is wrong: it is called no crash, and the next step is named."""
    found = judged(scheduler=SchedulerFacts(state="RUNNING", exit_code=0)).cause
    assert (found.rule, found.failure, found.certainty) == ("running", Failure.ENDED, Certainty.UNKNOWN)
    assert "job stacks" in found.remedy
    assert judged(kernel("n1", 0, LOST), scheduler=SchedulerFacts(state="RUNNING")).cause.rule == "broken_part"


def test_the_order_of_the_evidence_does_not_matter() -> None:
    lines = [kernel("n3", 4, LOST), *(job(f"n{n}", n, REMOTE, rank=2 * n) for n in range(3)), job("n1", 5, PORT)]
    assert judged(*lines).cause == judged(*reversed(lines)).cause


def test_errors_of_the_kernel_before_the_job_are_not_its_cause() -> None:
    """A kernel log goes back to the boot: a GPU that was lost, and an OOM kill, of jobs before this one."""
    oom = "Memory cgroup out of memory: Killed process 7 (python3) total-vm:1kB"
    old = [kernel("n1", -86_400, LOST), kernel("n2", -7200, oom)]
    error = job("n0", 0, "KeyError: 'tokens'", rank=0)
    facts = SchedulerFacts(started=T0 - timedelta(minutes=30))
    assert judged(*old, error, scheduler=facts).cause.rule == "exception"
    assert judged(*old, error, job("n1", 2, REMOTE, rank=2)).cause.rule == "exception", "without the job's start"
    within = kernel("n1", -1500, LOST)
    assert judged(*old, within, error, scheduler=facts).cause.first == within


def processes(**states: dict[str, object]) -> tuple[RankProcess, ...]:
    """Return a process for each rank; `r3={...}`: what is not usual of rank 3."""
    return tuple(
        RankProcess(rank=rank, host=host, **states.get(f"r{rank}", {}))  # type: ignore[arg-type]
        for rank, host in RANKS.items()
    )


def test_a_stopped_rank_is_proven_and_its_host_is_the_suspect() -> None:
    """The others' time-outs follow from it; its host's hardware is not to blame."""
    reports = [job(RANKS[rank], 700, WATCHDOG.format(rank, 9), rank) for rank in range(8) if rank != 3]
    found = judged(*reports, processes=processes(r3={"stopped": True}))
    assert (found.cause.rule, found.cause.failure) == ("stopped_rank", Failure.HANG)
    assert (found.cause.layer, found.cause.certainty) == (Layer.SYSTEM_SOFTWARE, Certainty.PROVEN)
    assert hosts(found) == ["n1"]


def test_a_suspended_job_blames_no_host() -> None:
    """No host is to blame for it."""
    stopped = processes(**{f"r{rank}": {"stopped": True} for rank in RANKS})
    assert hosts(judged(processes=stopped)) == []


def test_a_quota_that_holds_back_one_host_makes_the_job_slow() -> None:
    """Its ranks are the suspects; a quota that all ranks have is no suspect."""
    held = {"throttled": 0.9}
    found = judged(processes=processes(r2=held, r3=held))
    assert (found.cause.rule, found.cause.failure, found.cause.certainty) == (
        "throttled_rank",
        Failure.SLOW,
        Certainty.LIKELY,
    )
    assert set(hosts(found)) == {"n1"}
    assert judged(processes=processes(**{f"r{rank}": held for rank in RANKS})).cause.rule == "no_evidence"


def test_a_lost_gpu_outranks_what_its_death_stops() -> None:
    """A debugger that stops a rank after the fault hides no proven error that has a time."""
    found = judged(kernel("n1", 0, LOST), processes=processes(r3={"stopped": True}))
    assert found.cause.layer is Layer.HARDWARE


def test_a_silent_daemon_of_the_scheduler_is_no_broken_host() -> None:
    """The host answers: its system software is to blame, and nothing is drained for it."""
    found = judged(scheduler=SchedulerFacts(state="RUNNING", nodes=("n0", "n1"), silent_nodes=("n1",)))
    assert (found.cause.rule, found.cause.layer) == ("silent_daemon", Layer.SYSTEM_SOFTWARE)
    assert hosts(found) == ["n1"]


def test_a_job_that_ended_by_a_silent_daemon_lost_no_host() -> None:
    """Slurm ends the job after its time-out, and calls it a failure of the node: the host answers, and has not booted."""
    line = "slurmstepd: error: *** JOB 7 ON n0 CANCELLED AT 2026-11-01T12:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"
    facts = SchedulerFacts(state="NODE_FAIL", nodes=("n0", "n1"), silent_nodes=("n1",), ended=T0)
    found = judged(job("n0", 0, line), scheduler=facts)
    assert (found.cause.rule, found.cause.failure, hosts(found)) == ("silent_daemon", Failure.CRASH, ["n1"])


CLOSED = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.3]:4711"
ABORTED = "torch.distributed.DistBackendError: NCCL communicator was aborted on rank {0}. Original reason"
SIGNALLED = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 3456 got signal: 15"
OWN_ERROR = "mylib.errors.StepError: a peer gave no answer"
HUB = "urllib3.exceptions.MaxRetryError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded"


@pytest.mark.parametrize("line", [CLOSED, ABORTED, SIGNALLED])
def test_the_end_of_a_peer_is_no_error_of_the_program(line: str) -> None:
    """All ranks raise an exception when one of them ends: none of it stops the run, and the lost node is the cause."""
    peers = [job(host, 3, line.format(rank), rank=rank) for rank, host in RANKS.items() if host != "n3"]
    assert judged(*peers).cause.rule == "no_evidence"
    lost = SchedulerFacts(state="NODE_FAIL", failed_nodes=("n3",), ended=T0 + timedelta(seconds=330))
    found = judged(*peers, scheduler=lost)
    assert (found.cause.rule, hosts(found)) == ("lost_node", ["n3"])
    assert found.cause.action is JobAction.RESTART_WITHOUT


@pytest.mark.parametrize(
    "root",
    [kernel("n3", 4, LOST), job("n3", 5, f"n3:7:8 [0] {PORT}", rank=6)],
    ids=["proven, logged later", "likely, logged later"],
)
def test_an_exception_of_several_ranks_follows_from_what_failed_below_them(root: Observation) -> None:
    """Ranks that lose a peer raise exceptions of all kinds: a part that failed at that time is the cause."""
    found = judged(*(job(host, 2, OWN_ERROR, rank=rank) for rank, host in RANKS.items()), root)
    assert (found.cause.rule, hosts(found)) == ("broken_part", ["n3"])
    assert found.cause.action is JobAction.RESTART_WITHOUT


def test_a_part_that_failed_long_after_the_exception_is_not_its_cause() -> None:
    found = judged(*(job(host, 2, OWN_ERROR, rank=rank) for rank, host in RANKS.items()), kernel("n3", 400, LOST))
    assert (found.cause.rule, found.cause.certainty) == ("exception", Certainty.PROVEN)


def test_a_service_that_does_not_answer_blames_no_host_and_restarts() -> None:
    found = judged(*(job(host, 2, HUB, rank=rank) for rank, host in RANKS.items()))
    assert (found.cause.rule, found.cause.layer) == ("outside_service", Layer.SYSTEM_SOFTWARE)
    assert (found.cause.action, hosts(found)) == (JobAction.RESTART, [])


def test_a_container_that_one_host_cannot_start_blames_that_host() -> None:
    line = "slurmstepd: error: pyxis: container start failed with error code: 1"
    one = judged(job("n1", 0, line, rank=2), job("n0", 1, REMOTE, rank=0))
    assert (one.cause.rule, hosts(one)) == ("container_of_one_host", ["n1"])
    every = judged(*(job(host, 0, line, rank=rank) for rank, host in RANKS.items()))
    assert (every.cause.rule, hosts(every)) == ("container_start", [])


def test_process_groups_are_not_compared_with_each_other() -> None:
    """Each group counts its own operations: four ranks with 12 of one group are not behind four with 1000 of another."""
    line = "[PG ID {0} PG GUID {0}(x) Rank {1}] failure detected by watchdog at work sequence id: 9 PG status: "
    line += "last enqueued work: {2}, last completed work: 8"
    groups = {rank: (1, 1000) if rank < 4 else (5, 12) for rank in RANKS}
    reports = [
        job(RANKS[rank], 0, line.format(group, rank % 4, work), rank=rank) for rank, (group, work) in groups.items()
    ]
    assert judged(*reports).cause.rule == "unexplained_hang"
    late = job(RANKS[6], 0, line.format(5, 2, 11), rank=6)
    found = judged(*(one for one in reports if one.rank != 6), late)
    assert (found.cause.rule, [one.rank for one in found.cause.suspects]) == ("late_rank", [6])


def test_a_rank_without_a_record_is_named_where_all_others_wait() -> None:
    """A rank that holds the interpreter's lock writes no dump; a host of which no dump was read is not sure."""
    everyone = frozenset(range(8))
    state = GroupState(group="0", members=8, sequence=9, completed=8, created=1.0, operation="x", ranks=everyone)
    records = [RankRecord(rank=rank, version="2.5", groups=(state,)) for rank in range(8) if rank != 5]
    found = judged(records=tuple(records))
    assert (found.cause.rule, [one.rank for one in found.cause.suspects]) == ("unrecorded_rank", [5])
    assert (found.cause.certainty, hosts(found)) == (Certainty.LIKELY, ["n2"])
    other = judged(records=tuple(one for one in records if one.rank != 4))
    assert (other.cause.rule, other.cause.certainty) == ("unrecorded_rank", Certainty.UNKNOWN)


def test_a_step_that_srun_cancels_in_a_running_job_is_no_order() -> None:
    """A rank raised, srun ended the others, and the job waits for a process that does not end: the exception stays."""
    cancelled = job("n0", 3, "slurmstepd: error: *** STEP 7.0 ON n0 CANCELLED AT 2026-11-01T12:00:03 ***")
    raised = replace(job("n1", 0, "RuntimeError: mat1 and mat2 shapes cannot be multiplied", rank=2), at=None)
    running = judged(cancelled, raised, scheduler=SchedulerFacts(state="RUNNING"))
    assert (running.cause.rule, running.cause.action) == ("exception", JobAction.STOP)
    ended = judged(cancelled, raised, scheduler=SchedulerFacts(state="CANCELLED"))
    assert ended.cause.rule == "ended_by_order"


STEP = "slurmstepd: error: *** STEP 7.0 ON n0 CANCELLED AT 2026-11-01T12:00:03 ***"
JOB = "slurmstepd: error: *** JOB 7 ON n0 CANCELLED AT 2026-11-01T12:00:03 ***"
AT_LIMIT = "slurmstepd: error: *** STEP 7.0 ON n0 CANCELLED AT 2026-11-01T12:00:03 DUE TO TIME LIMIT ***"
EXCEPTION = "RuntimeError: mat1 and mat2 shapes cannot be multiplied"
DATED = "[2026-11-01 12:00:01] step 7\n"
LATER = "[2026-11-01 12:00:30] step 8\n"


@pytest.mark.parametrize(
    ("others", "log", "cause"),
    [
        # one log: its order counts, with times and without
        ("", f"{EXCEPTION}\n{STEP}\n", "exception"),
        ("", f"{DATED}{EXCEPTION}\n{STEP}\n", "exception"),
        ("", f"{STEP}\n{EXCEPTION}\n", "exception"),
        ("", f"{STEP}\n{LATER}{EXCEPTION}\n", "exception"),
        ("", f"{EXCEPTION}\n{JOB}\n", "exception"),
        ("", f"{DATED}{EXCEPTION}\n{JOB}\n", "exception"),
        ("", f"{JOB}\n{EXCEPTION}\n", "ended_by_order"),
        ("", f"{EXCEPTION}\n{AT_LIMIT}\n", "exception"),
        ("", f"{AT_LIMIT}\n{EXCEPTION}\n", "ended_by_order"),
        ("", f"{AT_LIMIT}\n{LATER}{EXCEPTION}\n", "ended_by_order"),
        # a step that is cancelled with its job, or at the limit, was cancelled by an order
        ("", f"{STEP}\n{JOB}\n{EXCEPTION}\n", "ended_by_order"),
        ("", f"{EXCEPTION}\n{STEP}\n{JOB}\n", "exception"),
        # two logs: without times, an exception comes before a step's end alone
        (f"{EXCEPTION}\n", f"{STEP}\n", "exception"),
        (f"{DATED}{EXCEPTION}\n", f"{STEP}\n", "exception"),
        (f"{LATER}{EXCEPTION}\n", f"{STEP}\n", "ended_by_order"),
        (f"{EXCEPTION}\n", f"{JOB}\n", "ended_by_order"),
        (f"{DATED}{EXCEPTION}\n", f"{JOB}\n", "exception"),
        (f"{LATER}{EXCEPTION}\n", f"{JOB}\n", "ended_by_order"),
        # what a signal brings is no exception of the program
        ("", f"{STEP}\nSignalException: Process 7 got signal: 15\n", "ended_by_order"),
        ("", f"Traceback (most recent call last):\nKeyboardInterrupt\n{STEP}\n", "ended_by_order"),
        # srun reports the failed rank, whose own text is lost
        ("", f"srun: error: n1: task 2: Exited with exit code 1\n{STEP}\n", "no_evidence"),
        ("", f"{STEP}\nsrun: error: n1: task 2: Exited with exit code 143\n", "ended_by_order"),
        ("", STEP.replace(" ***", " DUE TO TASK FAILURE ***", 2) + "\n", "no_evidence"),
        ("", f"{STEP}\n", "ended_by_order"),
    ],
)
def test_an_exception_and_a_cancellation_in_each_order(others: str, log: str, cause: str) -> None:
    """With logs alone: a program's own exception is the root of a cancelled step; an order is that of what follows it."""
    found = judged(*scanned("slurm.out", log), *scanned("rank1.log", others))
    assert found.cause.rule == cause
    if cause == "ended_by_order":
        sure = JOB in log or AT_LIMIT in log
        assert found.cause.certainty is (Certainty.PROVEN if sure else Certainty.LIKELY)


def scanned(name: str, text: str) -> tuple[Observation, ...]:
    pieces = [(0, text.encode())] if text else []
    return scan(pieces, LogFile(name=name, host="n0", source=Source.JOB), TimeReader(T0 + timedelta(hours=1)))


def test_a_job_that_completed_has_not_failed_by_a_warning() -> None:
    """A loss that was once no number ended nothing; a likely cause stays, since a script may hide a failed step."""
    completed = SchedulerFacts(state="COMPLETED", ended=T0 + timedelta(seconds=60))
    found = judged(job("n0", 0, "{'loss': nan, 'grad_norm': nan}"), scheduler=completed)
    assert (found.cause.rule, found.cause.failure) == ("completed", Failure.ENDED)
    hidden = judged(kernel("n0", 0, LOST), scheduler=completed)
    assert hidden.cause.layer is Layer.HARDWARE
