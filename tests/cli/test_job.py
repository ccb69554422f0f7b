"""`job why --logs` and `job pattern`: a recorded failure attributed in one page, and files that are wrong."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from clusterctl_cli.main import run

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
    code = run(["job", "why", "--logs", str(folder), "--json"])
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
    assert run(["job", "why", "--logs", str(tmp_path)]) == 0
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


def test_a_level_needs_an_expectation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "steps.csv").write_text("".join(f"{n},{1.5 + n % 3 / 1000}\n" for n in range(100)))
    assert pattern(tmp_path / "steps.csv", capsys)[1]["patterns"][0]["pattern"] == "healthy"
    code, found = pattern(tmp_path / "steps.csv", capsys, "--expected", "0.5")
    assert (code, found["patterns"][0]["pattern"]) == (1, "steady_10_to_45")


def test_a_file_without_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_text("hello\n")
    code, found = pattern(tmp_path / "x", capsys)
    assert (code, found["error"]["message"]) == (2, "has no step with its time")
