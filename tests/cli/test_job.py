"""`job why --logs` and `job pattern`: a recorded failure attributed in one page, and files that are wrong."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from clusterctl.operations.job_client import JobClient, RemoteRun
from clusterctl.operations.job_inputs import JobRunRequest
from clusterctl.operations.operation import Preview
from clusterctl_cli.approval import Flags
from clusterctl_cli.main import run
from clusterctl_cli.remote_runs import order
from clusterctl_cli.render_jobs import run_lines
from tests.cli.site_of_three import write as write_site

LOST = "[Sun Nov  1 12:00:06 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=python3, GPU has fallen off the bus.\n"
STEP = (
    "[2026-11-01 11:58:{:02}] iteration {:8}/ 500 | consumed samples: 1 | elapsed time per iteration (ms): {} | "
    "learning rate: 1.0E-4\n"
)
WATCHDOG = (
    "[rank{0}]:[E1101 12:10:00.0 x.cpp:1] [PG ID 0 PG GUID 0(default_pg) Rank {0}] failure detected by watchdog at work "
    "sequence id: 9 PG status: last enqueued work: 9, last completed work: 8\n"
)


def remote(rank: int) -> str:
    return (
        f"[rank{rank}]:[E1101 12:00:04.5 x.cpp:1] text\n"
        f"[rank{rank}]: ncclRemoteError: A call failed possibly due to a network error\n"
    )


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def why(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = run(["job", "why", "--logs", str(folder), "--site", str(folder), "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out or err)


def test_the_host_of_the_first_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A lost GPU on one host, the aborts of two others before it in their logs."""
    files = {
        "n0/train.log": STEP.format(0, 101, 512) + remote(0),
        "n1/train.log": remote(2),
        "n2/kernel.log": LOST,
        "job.json": json.dumps(
            {"version": 1, "job": "77", "state": "FAILED", "exit_code": 1, "nodes": ["n0", "n1", "n2"]}
        ),
    }
    code, found = why(write(tmp_path, files), capsys)
    assert code == 0
    cause = found["cause"]
    assert (cause["failure"], cause["layer"], cause["certainty"]) == ("crash", "hardware", "proven")
    assert cause["suspects"] == [{"host": "n2", "part": "gpu 0000:3b:00.0", "rank": None}]
    assert (found["job"], found["last_step"], found["consequences"]) == ("77", 101, {"nccl_remote": 2})
    assert cause["place"] == "n2/kernel.log at byte 0"
    assert {"rule", "persistence", "action", "remedy", "error", "at", "step", "because", "line"} <= cause.keys()


def test_one_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"n0/train.log": remote(0), "n2/kernel.log": LOST})
    assert run(["job", "why", "--logs", str(tmp_path), "--site", str(tmp_path)]) == 0
    page = capsys.readouterr().out
    assert page.startswith("crash, hardware, proven\n")
    assert "suspects     n2, gpu 0000:3b:00.0" in page
    assert "restart without the suspects" in page


def test_a_hang_with_dumps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rank whose last operation is behind; a dump that is cut is reported, and blames nothing."""

    def dump(sequence: int) -> bytes:
        entry = {"process_group": ("0", "pg"), "collective_seq_id": sequence, "is_p2p": False, "state": "scheduled"}
        config = {"0": {"ranks": "[0, 1, 2, 3]"}}
        return pickle.dumps({"version": "2.10", "entries": [entry], "pg_config": config})

    files: dict[str, str | bytes] = {f"dumps/nccl_trace_rank_{rank}": dump(8 if rank == 2 else 9) for rank in range(3)}
    files["dumps/nccl_trace_rank_3"] = dump(9)[:20]
    files["slurm-7.out"] = "".join(WATCHDOG.format(rank) for rank in (0, 1))
    files["job.json"] = json.dumps({"version": 1, "ranks": {str(rank): f"n{rank}" for rank in range(4)}})
    code, found = why(write(tmp_path, files), capsys)
    assert code == 0
    assert (found["cause"]["failure"], found["cause"]["rule"]) == ("hang", "late_rank")
    assert found["cause"]["suspects"] == [{"host": "n2", "part": "", "rank": 2}]
    assert "nccl_trace_rank_3" in found["unmeasured"][0]


def test_an_unknown_cause_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = why(write(tmp_path, {"slurm-7.out": "hello\n"}), capsys)
    assert (code, found["cause"]["certainty"], found["cause"]["action"]) == (1, "unknown", "investigate")


def test_packed_logs_are_read_and_damaged_ones_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = gzip.compress(LOST.encode())
    files: dict[str, str | bytes] = {"n2/kernel.log.gz": packed, "n3/kernel.log.gz": packed[:-12]}
    code, found = why(write(tmp_path, files), capsys)
    assert code == 0
    assert {suspect["host"] for suspect in found["cause"]["suspects"]} == {"n2"}
    assert found["unmeasured"][0].startswith("n3/kernel.log.gz")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("RuntimeError: x\n".encode("utf-16"), "is UTF-16: convert it with iconv -f UTF-16 -t UTF-8"),
        (bytes(range(128, 256)) * 40, "is mostly no UTF-8 text"),
    ],
)
def test_a_log_that_is_no_text_is_reported(
    content: bytes, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is never taken for a log without an error; holes of NUL, which several writers leave, are no problem."""
    code, found = why(write(tmp_path, {"slurm-1.out": content, "n1/train.log": bytes(8192) + b"step 1\n"}), capsys)
    assert (code, found["unmeasured"]) == (1, [f"slurm-1.out: {problem}"])


AS_USER = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all")
"""Takes from root what lets it read any folder."""


def test_a_folder_of_a_host_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    write(tmp_path, {"n0/train.log": "KeyError: 'tokens'\n", "n1/train.log": "KeyError: 'tokens'\n"})
    (tmp_path / "n1").chmod(0)
    command = [str(Path(sys.executable).with_name("clusterctl")), "job", "why", "--logs", str(tmp_path), "--json"]
    asked = subprocess.run([*(AS_USER if os.geteuid() == 0 else ()), *command], capture_output=True, check=False)
    (tmp_path / "n1").chmod(0o700)
    found = json.loads(asked.stdout)
    assert (found["cause"]["rule"], found["unmeasured"]) == ("exception", ["n1: cannot be read"])


def test_a_rank_without_a_time_out_in_its_log_is_the_suspect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without `ranks` in `job.json`: the names of logs show that there is a rank, and folders of several hosts its host."""
    logs = {f"n{rank // 2}/rank_{rank}.log": WATCHDOG.format(rank) for rank in range(6) if rank != 3}
    code, found = why(write(tmp_path / "a", {**logs, "n1/rank_3.log": "step 1\n"}), capsys)
    assert (code, found["cause"]["rule"]) == (0, "silent_rank")
    assert found["cause"]["suspects"] == [{"host": "n1", "part": "", "rank": 3}]
    shared = {f"n0/{Path(name).name}": text for name, text in {**logs, "n1/rank_3.log": "step 1\n"}.items()}
    _, found = why(write(tmp_path / "b", shared), capsys)
    assert found["cause"]["suspects"] == [{"host": "", "part": "", "rank": 3}], (
        "read on one host of a shared file system"
    )


def test_logs_that_count_the_ranks_of_a_host_name_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = {f"n{host}/rank_{local}.log": WATCHDOG.format(2 * host + local) for host in (0, 1) for local in (0, 1)}
    _, found = why(write(tmp_path / "a", logs), capsys)
    assert found["cause"]["rule"] == "unexplained_hang"
    _, found = why(write(tmp_path / "b", {name: text for name, text in logs.items() if name[1] == "1"}), capsys)
    assert found["cause"]["rule"] == "unexplained_hang"


@pytest.mark.parametrize(
    ("state", "raised_first", "rule"),
    [("FAILED", True, "exception"), ("CANCELLED", True, "exception"), ("CANCELLED", False, "ended_by_order")],
)
def test_a_step_that_srun_cancels_is_no_order(
    state: str, raised_first: bool, rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With -K srun cancels the other ranks of a failed one; of a cancelled job, what came after it follows from that."""
    raised = (
        "0: Traceback (most recent call last):\n"
        '0:   File "/x/train.py", line 3, in <module>\n'
        "0:     raise ValueError('shapes differ')\n"
        "0: ValueError: shapes differ\n"
    )
    cancelled = "slurmstepd: error: *** STEP 7.0 ON c1 CANCELLED AT 2026-11-01T12:00:05 ***\n"
    log = raised + cancelled if raised_first else cancelled + raised
    code, found = why(
        write(tmp_path, {"slurm-7.out": log, "job.json": json.dumps({"version": 1, "state": state})}), capsys
    )
    assert (code, found["cause"]["rule"]) == (0, rule)


def test_symbolic_links_are_not_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder of a user may link to any file of the controller."""
    (tmp_path / "outside").write_text(LOST)
    folder = write(tmp_path / "logs", {"slurm-7.out": "hello\n"})
    (folder / "n2").mkdir()
    (folder / "n2/kernel.log").symlink_to(tmp_path / "outside")
    code, found = why(folder, capsys)
    assert (code, found["lines"]) == (1, 0)


@pytest.mark.parametrize(
    ("facts", "field"),
    [
        ("{", "job.json"),
        ('{"version": 2}', "version"),
        ('{"version": 1, "utc_offset": "+99:00"}', "utc_offset"),
        ('{"version": 1, "ended": "yesterday"}', "ended"),
        ('{"version": 1, "ranks": {"x": "n1"}}', "ranks"),
    ],
)
def test_wrong_facts_name_their_field(
    facts: str, field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = why(write(tmp_path, {"job.json": facts, "slurm-7.out": "hello\n"}), capsys)
    assert code == 2
    assert field in found["error"]["where"]


def test_a_folder_without_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = why(tmp_path, capsys)
    assert (code, found["error"]["message"]) == (2, "holds no log")


def pattern(file: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, dict[str, Any]]:
    code = run(["job", "pattern", str(file), "--json", *more])
    out, err = capsys.readouterr()
    return code, json.loads(out or err)


def test_the_pattern_of_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Steps of Megatron-LM that take longer from the 100th on."""
    lines = "".join(STEP.format(n % 60, n, 500 + n % 7 if n < 100 else 720 + n % 7) for n in range(200))
    (tmp_path / "train.log").write_text(lines)
    code, found = pattern(tmp_path / "train.log", capsys)
    assert code == 1
    (only,) = found["patterns"]
    assert (only["pattern"], only["alarm"], only["layer"]) == ("sudden_drop", True, "hardware")
    assert found["steps"] == 200


def test_a_log_in_another_encoding_has_steps_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write(tmp_path, {"train.log": b"caf\xe9\n" + "".join(STEP.format(n, n, 512) for n in range(30)).encode()})
    assert run(["job", "pattern", str(log / "train.log")]) == 0
    assert "30 steps" in capsys.readouterr().out


def test_a_level_needs_an_expectation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "steps.csv").write_text("".join(f"{n},{1.5 + n % 3 / 1000}\n" for n in range(100)))
    assert pattern(tmp_path / "steps.csv", capsys)[1]["patterns"][0]["pattern"] == "healthy"
    code, found = pattern(tmp_path / "steps.csv", capsys, "--expected", "0.5")
    assert (code, found["patterns"][0]["pattern"]) == (1, "steady_10_to_45")


def test_a_file_without_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_text("hello\n")
    code, found = pattern(tmp_path / "x", capsys)
    assert (code, found["error"]["message"]) == (2, "has no step with its time")


def py_spy(name: str) -> str:
    frames = [{"name": name, "filename": "/app/train.py", "line": 3}]
    return json.dumps([{"pid": 7, "thread_id": 1, "thread_name": "MainThread", "frames": frames}])


def hung(folder: Path) -> Path:
    """Write stacks of four ranks, of which the one on n3 waits for NFS."""
    files = {f"n{rank}/pyspy_rank_{rank}.json": py_spy("all_reduce") for rank in range(3)}
    files["n3/pyspy_rank_3.json"] = py_spy("read")
    files["n3/kernel_stack_rank_3"] = "[<0>] nfs_wait_bit_killable+0x1e/0x90 [nfs]\n"
    files["n0/pyspy_rank_9.json"] = "{"
    return write(folder, dict(files))


def test_the_small_group_of_stacks_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["job", "stacks", "--logs", str(hung(tmp_path)), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(group["ranks"], group["hosts"]) for group in found["groups"]] == [
        ([3], ["n3"]),
        ([0, 1, 2], ["n0", "n1", "n2"]),
    ]
    assert found["groups"][0]["kernel"] == ["nfs_wait_bit_killable"]
    assert "pyspy_rank_9.json" in found["unread"][0]
    assert run(["job", "stacks", "--logs", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("1 rank: 3 on n3\n  kernel  nfs_wait_bit_killable\n")


def test_stacks_are_evidence_of_a_hang(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = why(hung(tmp_path), capsys)
    cause = found["cause"]
    assert (code, cause["rule"], cause["layer"]) == (0, "odd_stack", "storage")
    assert cause["suspects"] == [{"host": "n3", "part": "", "rank": 3}]


def test_a_folder_without_stacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"slurm-7.out": "hello\n"})
    assert run(["job", "stacks", "--logs", str(tmp_path)]) == 2
    assert "holds no stack" in capsys.readouterr().err


def failed_with_nan(folder: Path, job: str, host: str, minute: int) -> Path:
    """Write the logs of a job in which one rank of a host found NaN."""
    line = f"[2026-11-01 12:{minute:02}:00] x\n[rank5]: AssertionError: Rank 5: found NaN in local forward loss calculation.\n"
    facts = json.dumps({"version": 1, "job": job, "state": "FAILED"})
    return write(folder, {f"{host}/train.log": line, "n9/train.log": "hello\n", "job.json": facts})


def test_a_recorded_failure_is_evidence_of_the_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """NaN on one host: unknown once, silent corruption of that host where an earlier job had it there, too."""
    site = write_site(tmp_path)
    first = failed_with_nan(tmp_path / "77", "77", "n2", 1)
    second = failed_with_nan(tmp_path / "78", "78", "n2", 30)
    argv = ["job", "why", "--site", str(site), "--json", "--logs"]
    assert run([*argv, str(first), "--record"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["cause"]["certainty"], found["recorded"], found["earlier_failures"]) == ("unknown", True, 0)
    assert run([*argv, str(first), "--record"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["recorded"], found["earlier_failures"]) == (False, 0), "the same attempt is recorded once"
    assert run([*argv, str(second)]) == 0
    found = json.loads(capsys.readouterr().out)
    cause = found["cause"]
    assert (cause["layer"], cause["certainty"], found["recorded"]) == ("hardware", "likely", False)
    assert "job 77 had it on this host, too" in cause["because"]
    assert run(["journal", "verify", "--site", str(site)]) == 0


def test_a_record_needs_a_site_and_a_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = write(tmp_path / "logs", {"slurm-7.out": "hello\n"})
    assert run(["job", "why", "--logs", str(logs), "--record", "--site", str(tmp_path)]) == 2
    site = write_site(tmp_path)
    assert run(["job", "why", "--logs", str(logs), "--record", "--site", str(site)]) == 2
    assert "job.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option", ["--arr=0-3", "--array=0-3", "--requ", "-a0-3", "--wai", "-W", "--nodel=n1", "--test", "time=5"]
)
def test_options_that_the_run_needs_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    """Slurm takes the beginning of a name for the whole: `--arr` would make many jobs of a run that follows one."""
    script = write(tmp_path, {"train.sh": "#!/bin/bash\n"}) / "train.sh"
    assert run(["job", "run", f"--sbatch={option}", "--site", str(write_site(tmp_path)), str(script)]) == 2
    assert f"{option!r} is not taken" in capsys.readouterr().err


def test_an_array_in_the_script_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = write(tmp_path, {"train.sh": "#!/bin/bash\n#SBATCH --array=0-3\nsrun x\n"}) / "train.sh"
    assert run(["job", "run", "--sbatch=--no-kill", "--site", str(write_site(tmp_path)), str(script)]) == 2
    assert "it asks Slurm for several jobs" in capsys.readouterr().err


class OrderingClient:
    """Answers as the service does right after an order: its watcher has not found the job yet."""

    def preview(self, _request: object) -> tuple[Preview, str]:
        return Preview(operation="job run", question="Run it?"), "digest"

    def order(self, _request: object, _approved: str) -> RemoteRun:
        return RemoteRun(name="run-1", nodes=("n1",))

    def submit(self, _request: object, _run: RemoteRun) -> str:
        return "4711"

    def run(self, _name: str) -> dict[str, Any]:
        attempt = {"attempt": 1, "job": "", "nodes": ["n1"], "avoided": [], "state": None, "drained": []}
        named = {"name": "run-1", "state": "running", "reason": "", "script": "/x.sh", "owner": "ada", "folder": "/l"}
        return {**named, "nodes": 1, "attempts": [attempt]}


def test_a_submitted_run_shows_its_job() -> None:
    """The user has just read the number: the same output does not call the attempt not submitted."""
    flags = Flags(yes=True, dry_run=False, as_json=False)
    found = order(cast("JobClient", OrderingClient()), JobRunRequest(script="/x.sh", folder="/l"), flags)
    assert found is not None
    assert list(run_lines(found))[1:] == [
        "  script  /x.sh on 1 node, by ada",
        "  logs    /l",
        "  attempt 1: job 4711 on n1",
    ]


@pytest.mark.parametrize(
    ("argv", "recorded"), [(["why"], True), (["stacks"], True), (["storage"], False)], ids=["why", "stacks", "storage"]
)
def test_without_slurm_the_remedy_names_only_options_of_the_command(
    argv: list[str], recorded: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Recorded logs help where the command reads them; `job storage` reads counters of running jobs only."""
    assert run(["job", *argv, "77", "--site", str(write_site(tmp_path))]) == 2
    error = capsys.readouterr().err
    assert "add scheduler: {kind: slurm}" in error
    assert ("--logs DIR" in error) == recorded
