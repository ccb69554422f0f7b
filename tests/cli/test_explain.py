"""`explain`: one line or a log on stdin; what no rule knows is reported and is exit code 1."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from clusterctl_cli.main import run

ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"


def test_the_contract_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Every key, for a line given without quotes."""
    assert run(["explain", "-o", "json", *ECC.split()]) == 0
    document = json.loads(capsys.readouterr().out)
    (line,) = document["lines"]
    assert document["unknown"] == 0
    assert line["rule"] == "cuda_ecc"
    assert (line["layer"], line["certainty"], line["role"]) == ("hardware", "proven", "cause")
    assert {"line", "times", "failure", "persistence", "meaning", "remedy", "parts", "source"} <= line.keys()


def test_an_unknown_line(capsys: pytest.CaptureFixture[str]) -> None:
    """No guess: exit code 1, and the count on stderr."""
    assert run(["explain", "hello"]) == 1
    answer = capsys.readouterr()
    assert answer.out == ""
    assert "1 line that no rule knows" in answer.err


def test_no_text_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", ""]) == 2
    assert run(["explain"]) == 2
    assert "TEXT" in capsys.readouterr().err


def test_a_log_on_stdin() -> None:
    """Kinds once, with their number; bytes that are no text, and escapes for a terminal, do no harm."""
    log = f"{ECC}\n\n{ECC}\nhello\n".encode() + b"\xff\xfe\x1b[2J found NaN in local\n"
    argv = [sys.executable, "-m", "clusterctl_cli.main", "explain", "-"]
    ran = subprocess.run(argv, input=log, capture_output=True, check=True)
    assert b"(2 lines)" in ran.stdout
    assert b"\x1b" not in ran.stdout
    assert b"1 line that no rule knows" in ran.stderr


@pytest.mark.parametrize("form", ["table", "json"])
def test_output_to_a_full_disk_is_an_error_of_the_environment(form: str) -> None:
    """No traceback: cause and remedy on stderr, and exit code 3."""
    command = [str(Path(sys.executable).with_name("clusterctl")), "explain", "-o", form, ECC]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
