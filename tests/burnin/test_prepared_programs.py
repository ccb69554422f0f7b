"""Built-in programs run in copies of the program that runs the probes, and behave as if each had been started again."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from clusterctl_burnin.package_data import text_of
from clusterctl_burnin.probe import loader
from tests.processes import started_as, unique_seconds

HUNG = unique_seconds(4721)
NEW_PYTHON = "import os; print(open('/proc/self/cmdline').read().split(chr(0))[1:-1] != ['-'])"


def results(text: str, *, arguments: tuple[str, ...] = (), **more: object) -> Any:
    """Return what the document has of a program with this text; `more`: fields of its probe."""
    probe = {"name": "one", "argv": ["demo", *arguments], "timeout": 60.0, "max_bytes": 65536, "waits": False, **more}
    spec = {
        "parallel": 4,
        "requirements": {"a": 1},
        "programs": {"demo": [text, "the worker's text"]},
        "loader": loader(),
        "probes": [probe],
    }
    texts = [text_of("node/processes.py"), text_of("node/bundle.py")]
    call = f"main(json.loads({json.dumps(json.dumps(spec))}))"
    sent = f"import json, sys\nsys.argv[1:] = {texts!r}\n{loader()[0]}\n{call}\n"
    done = subprocess.run([sys.executable, "-"], input=sent, capture_output=True, check=True, text=True, timeout=120)
    assert not done.stderr
    return json.loads(done.stdout)["probes"]["one"]


def test_a_program_runs_in_a_copy_and_not_in_a_new_python() -> None:
    """A start of Python takes longer than most programs; the second reading has a copy of its own."""
    found = results(NEW_PYTHON, again_after=0.3)
    first, second = found["stdout"].split("\n=== read again after ")
    assert (first, second.splitlines()[1]) == ("False", "False")


def test_what_is_retried_more_often_than_prepared_is_in_a_new_python() -> None:
    """It runs until its time is over, whatever was prepared."""
    text = f"{NEW_PYTHON}\nimport sys\nnew = open('/proc/self/cmdline').read().split(chr(0))[1:-1] != ['-']\n"
    found = results(f"{text}sys.exit(0 if new else 3)", retry_on="False")
    assert (found["rc"], found["stdout"]) == (0, "True\n")


@pytest.mark.parametrize(
    ("text", "code", "output", "error"),
    [
        ("print('ü')", 0, "ü\n", ""),
        ("import sys; sys.exit(7)", 7, "", ""),
        ("import sys; sys.exit('no GPU')", 1, "", "no GPU\n"),
        ("import sys; sys.exit()", 0, "", ""),
        ("import os; os._exit(9)", 9, "", ""),
        ("import os; os.kill(os.getpid(), 9)", -9, "", ""),
        ("import sys; print(sys.argv[1:])", 0, "[\"the worker's text\", 'x', 'y']\n", ""),
        ("import sys; print(repr(sys.stdin.read()))", 0, "''\n", ""),
        ("import os; print(sorted(os.environ)[0], os.environ['CLUSTERCTL_REQUIREMENTS'])", 0, None, ""),
        ("import sys; print([p for p in sys.path if 'packages' in p or not p])", 0, "[]\n", ""),
        ("import threading; threading.Timer(0.2, print, ['late']).start()", 0, "late\n", ""),
        ("if __name__ == '__main__': print('main')", 0, "main\n", ""),
        ("import os; print(os.getsid(0) == os.getpid(), len(os.listdir('/proc/self/fd')))", 0, "True 4\n", ""),
        ("from clusterctl_burnin.node.processes import ask; print(ask('echo', 'x'))", 0, "(0, 'x\\n', '')\n", ""),
    ],
)
def test_it_behaves_as_a_program_that_was_started(text: str, code: int, output: str | None, error: str) -> None:
    """Exit code, both outputs, arguments, empty stdin, environment, paths, threads, session, no stray descriptor."""
    found = results(text, arguments=("x", "y"))
    assert (found["status"], found["rc"], found["stderr"]) == ("ok", code, error)
    if output is not None:
        assert found["stdout"] == output


def test_its_traceback_is_on_stderr() -> None:
    found = results("raise ValueError('bad')")
    assert (found["rc"], found["stdout"]) == (1, "")
    assert found["stderr"].endswith("ValueError: bad\n")


def test_one_that_hangs_is_killed_with_all_that_it_started() -> None:
    """At its time-out, as any probe; what it wrote before is kept."""
    text = f"import subprocess\nstarted = subprocess.Popen(['sleep', '{HUNG}'])\nprint('begun', flush=True)\nstarted.wait()"
    found = results(text, timeout=3.0)
    assert (found["status"], found["rc"], found["stdout"]) == ("timeout", None, "begun\n")
    assert started_as("sleep", HUNG) == []
