"""burnin judge: recorded evidence judged again, offline; what is broken is named, and a bad file is the operator's."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from benchmarks.judge import recording
from clusterctl.operations.judging import SHARE
from clusterctl_burnin.suites.suite import shipped_suite
from clusterctl_cli.main import run

LOADS = tuple(load.name for load in shipped_suite().solo)
"""Of one node, which these recordings have no answers of."""


def judged(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, dict[str, Any]]:
    code = run(["burnin", "judge", str(folder), "--site", str(folder), "--json", *more])
    out, err = capsys.readouterr()
    return code, json.loads(out or err)


def write(folder: Path, name: str, **changes: Any) -> dict[str, Any]:
    document = recording(name, random.Random(name)) | changes
    (folder / f"{name}.json").write_text(json.dumps(document))
    return document


def test_the_contract_of_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every node, every finding with its keys; what recordings do not keep is reported and not passed."""
    write(tmp_path, "node001")
    _, found = judged(tmp_path, capsys)
    (node,) = found["nodes"]
    assert node["name"] == "node001"
    keys = {"check", "verdict", "subject", "code", "measured", "expected", "remedy", "root"}
    assert all(keys <= finding.keys() for finding in node["findings"])
    assert {"gpu_ecc", "identity", "kernel_log"} <= {finding["check"] for finding in node["findings"]}
    assert node["not_judged"] == ["clock_offset", "host_network", *LOADS]
    assert not {"clock_offset", "host_network"} & {finding["check"] for finding in node["findings"]}
    assert "needs 20" in found["not_compared"][0]["why"]


def test_what_was_not_recorded_is_inconclusive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A probe that is not in the recording passes nothing; exit code 1."""
    document = recording("node001", random.Random(1))
    del document["readings"]["probes"]["swapon"]
    write(tmp_path, "node001", readings=document["readings"])
    code, found = judged(tmp_path, capsys)
    (swap,) = [finding for finding in found["nodes"][0]["findings"] if finding["check"] == "swap_off"]
    assert (code, swap["verdict"]) == (1, "inconclusive")


def test_limits_are_those_of_today(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An uncorrectable error that was recorded fails, on its GPU, with its remedy."""
    document = recording("node001", random.Random(1))
    smi = document["readings"]["probes"]["nvidia_smi"]
    smi["stdout"] = smi["stdout"].replace("DRAM Uncorrectable            : 0", "DRAM Uncorrectable            : 3", 1)
    write(tmp_path, "node001", readings=document["readings"])
    code, found = judged(tmp_path, capsys)
    bad = [f for f in found["nodes"][0]["findings"] if f["check"] == "gpu_ecc"]
    assert (code, bad[0]["verdict"], bad[0]["subject"]) == (1, "fail", "gpu 0")
    assert bad[0]["remedy"]


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("not json", "node001.json"),
        ("{}", "node001.json: version"),
        (json.dumps({**recording("node001", random.Random(1)), "extra": 1}), "node001.json: extra"),
        (json.dumps({**recording("node001", random.Random(1)), "readings": {"version": 1}}), "node001.json: readings."),
        (json.dumps({**recording("node001", random.Random(1)), "sku": "none"}), "node001.json: sku"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, where: str) -> None:
    """Exit code 2, with file and field."""
    (tmp_path / "node001.json").write_text(content)
    code, found = judged(tmp_path, capsys)
    assert code == 2
    assert where in found["error"]["where"]
    assert found["error"]["remedy"]


def test_an_empty_folder_and_a_node_twice_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing was measured; or it is not known which of two holds."""
    code, found = judged(tmp_path, capsys)
    assert (code, found["error"]["where"]) == (2, str(tmp_path))
    document = write(tmp_path, "node001")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "recording.json").write_text(json.dumps(document))
    code, found = judged(tmp_path, capsys)
    assert code == 2
    assert "node001 is recorded in" in found["error"]["message"]


def test_a_fleet_is_shared_out_among_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each node is judged as it is alone, in the order of names; a bad file is named as one alone is."""
    for number in range(2 * SHARE):
        write(tmp_path, f"node{number:03d}", serial=f"S{number}")
    code, found = judged(tmp_path, capsys)
    alone = tmp_path / "alone"
    alone.mkdir()
    write(alone, "node007", serial="S7")
    alone_code, lonely = judged(alone, capsys)
    assert code == alone_code
    assert [node["name"] for node in found["nodes"]] == [f"node{number:03d}" for number in range(2 * SHARE)]
    (seventh,) = (node for node in found["nodes"] if node["name"] == "node007")
    assert seventh["findings"][: len(lonely["nodes"][0]["findings"])] == lonely["nodes"][0]["findings"]
    (tmp_path / "node020.json").write_text("not json")
    code, found = judged(tmp_path, capsys)
    assert code == 2
    assert found["error"]["where"].endswith("node020.json")
    assert found["error"]["remedy"]
