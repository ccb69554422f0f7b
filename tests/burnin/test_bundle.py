"""The program that runs on the node: no probe hangs it, and nothing is left of any."""

from __future__ import annotations

import http.server
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Origin
from clusterctl_burnin.package_data import text_of
from clusterctl_burnin.probe import (
    Probe,
    Readings,
    Status,
    UnmeasuredError,
    argv_for,
    parse_readings,
    programs,
    script,
)
from tests.processes import started_as, unique_seconds

HUNG, STUBBORN, DAEMON = (unique_seconds(number) for number in (4711, 4714, 4715))


def run(*probes: Probe, parallel: int = 8, patience: float = 1.0) -> Readings:
    sent = script(probes, parallel=parallel, patience=patience)
    done = subprocess.run([sys.executable, "-"], input=sent, capture_output=True, check=True)
    return parse_readings(done.stdout.decode())


def sh(name: str, text: str, **rest: object) -> Probe:
    return Probe(name, ("sh", "-c", text), **{"timeout": 120.0, **rest})


def test_the_document_has_the_result_of_each_probe() -> None:
    """Status, exit code, both outputs, times; and the host, its boot and where the evidence comes from."""
    readings = run(sh("good", "echo out; echo err >&2"), sh("bad", "exit 3"), Probe("none", ("no-such-tool",)))
    good, bad, none = (readings.probes[name] for name in ("good", "bad", "none"))
    assert (good.status, good.rc, good.stdout, good.stderr) == (Status.OK, 0, "out\n", "err\n")
    assert (bad.status, bad.rc) == (Status.OK, 3)
    assert (none.status, none.rc) == (Status.MISSING, None)
    assert readings.host == os.uname().nodename
    assert readings.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert readings.origin is Origin.REAL
    assert readings.started <= good.started <= readings.finished


def test_the_programs_get_the_factor_of_their_time_limits() -> None:
    """What a built-in program itself waits for is given as many times as long as the probe."""
    readings = run(sh("factor", "echo $CLUSTERCTL_PATIENCE"), patience=20.0)
    assert float(readings.probes["factor"].stdout) == 20.0


def test_a_hanging_probe_costs_its_own_timeout_only() -> None:
    """The others answer; its output so far is kept; its children and grandchildren are gone."""
    began = time.monotonic()
    hang = sh("hang", f"echo before; setsid sleep {HUNG} & sleep {HUNG} & (sleep {HUNG}); wait", timeout=4.0)
    readings = run(hang, sh("good", "echo fine"))
    assert time.monotonic() - began < 200
    assert (readings.probes["hang"].status, readings.probes["hang"].stdout) == (Status.TIMEOUT, "before\n")
    assert readings.probes["good"].stdout == "fine\n"
    assert started_as("sleep", HUNG) == []


def test_a_probe_that_ignores_sigterm_is_killed() -> None:
    """SIGKILL, not a request."""
    readings = run(sh("stubborn", f"trap '' TERM HUP INT; sleep {STUBBORN}", timeout=0.5))
    assert readings.probes["stubborn"].status is Status.TIMEOUT
    assert started_as("sleep", STUBBORN) == []


def test_what_a_probe_leaves_behind_is_killed() -> None:
    """A background child that holds the output open neither delays the answer nor outlives it."""
    began = time.monotonic()
    readings = run(sh("daemon", f"sleep {DAEMON} & echo over", timeout=250))
    assert (readings.probes["daemon"].status, readings.probes["daemon"].stdout) == (Status.OK, "over\n")
    assert time.monotonic() - began < 200
    assert started_as("sleep", DAEMON) == []


def test_a_probe_that_closes_its_output_is_waited_for() -> None:
    """The end of output is not the end of the probe."""
    readings = run(sh("quiet", "exec >&- 2>&-; sleep 0.3; exit 7"))
    assert readings.probes["quiet"].rc == 7


def test_output_is_capped() -> None:
    """A tool that never stops talking does not fill the node's memory or the journal."""
    readings = run(sh("loud", "head -c 3000000 /dev/zero | tr '\\0' x", max_bytes=1000))
    assert (readings.probes["loud"].status, len(readings.probes["loud"].stdout)) == (Status.OK, 1000)


def test_probes_run_side_by_side_within_bounds(tmp_path: Path) -> None:
    """Never more than two at a time, and two at a time indeed: one of each pair ends only while the other runs."""
    for name in ("first", "second"):
        os.mkfifo(tmp_path / name)
    words = [f"echo met > {tmp_path}/first", f"cat {tmp_path}/first", f"echo met > {tmp_path}/second"]
    words.append(f"cat {tmp_path}/second")
    readings = run(*(sh(f"p{i}", one, timeout=250.0) for i, one in enumerate(words)), parallel=2)
    assert {one.status for one in readings.probes.values()} == {Status.OK}
    rounding = 0.01
    spans = [(r.started, r.started + timedelta(seconds=r.seconds - rounding)) for r in readings.probes.values()]
    at_once = [sum(start <= moment < end for start, end in spans) for moment, _ in spans]
    assert max(at_once) <= 2


def test_a_probe_is_repeated_while_it_asks_for_it(tmp_path: Path) -> None:
    """`retry_on`: again while it fails with that text; another failure ends it at once."""
    count = f"echo x >> {tmp_path}/tries; [ $(wc -l < {tmp_path}/tries) -ge 3 ] || {{ echo 'not yet' >&2; exit 1; }}"
    readings = run(sh("later", count, retry_on="not yet"), sh("never", "echo other >&2; exit 1", retry_on="not yet"))
    assert readings.probes["later"].rc == 0
    assert (tmp_path / "tries").read_text() == "x\n" * 3
    assert readings.probes["never"].rc == 1


def test_a_probe_is_read_twice(tmp_path: Path) -> None:
    """`again_after`: both outputs, and the seconds between them; none where one of the two runs failed."""
    count = f"echo x >>{tmp_path}/n; wc -l <{tmp_path}/n"
    readings = run(
        (both := sh("both", count, again_after=0.3)),
        (once := sh("once", "echo 1")),
        (late := sh("late", f"[ ! -e {tmp_path}/m ] && echo 1 >{tmp_path}/m", again_after=0.1)),
    )
    twice = readings.twice(both)
    assert (twice.first, twice.second) == ("1\n", "2\n")
    assert 0.3 <= twice.seconds <= (readings.finished - readings.started).total_seconds()
    with pytest.raises(ParseError, match="second reading is missing"):
        readings.twice(once)
    with pytest.raises(UnmeasuredError, match="exit code 1"):
        readings.twice(late)


def test_what_is_first_has_ended_before_others_begin(tmp_path: Path) -> None:
    """The kernel log is read once the sampler follows it: no message is in neither of them."""
    there = tmp_path / "there"
    first = sh("first", f"sleep 0.5; touch {there}", first=True)
    found = run(sh("other", f"cat {there}"), first, sh("waiting", f"cat {there}", waits=True))
    assert [found.probes[name].rc for name in ("first", "other", "waiting")] == [0, 0, 0]


def test_stdin_is_empty() -> None:
    """A probe that reads its input does not eat the program."""
    assert run(sh("reader", "cat; echo end")).probes["reader"].stdout == "end\n"


def test_the_program_needs_python_3_9_only() -> None:
    """It, and each program that travels with it, parses as Python 3.9; the standard library and `processes` suffice."""
    import ast

    sent = [text_of(f"node/{name}.py") for name in ("processes", "bundle", "fingerprints")]
    for text in (script([]).decode(), *sent, *itertools.chain(*programs().values())):
        tree = ast.parse(text, feature_version=(3, 9))
        imported = {
            alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        }
        imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        imported -= {"clusterctl_burnin.node.processes"}
        assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names


class Metrics(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"asked {self.path}\n".encode())

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metrics) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_http_get_needs_no_tool(server: int) -> None:
    """The built-in probe asks for the very URL; a refused connection is a failure with its reason."""
    readings = run(
        Probe("web", ("http-get", f"http://127.0.0.1:{server}/m?c%5B%5D=u")),
        Probe("shut", ("http-get", "http://127.0.0.1:9/")),
    )
    assert readings.probes["web"].stdout == "asked /m?c%5B%5D=u\n"
    assert readings.probes["shut"].rc == 1
    assert "refused" in readings.probes["shut"].error_output


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"version": 2}', "Sorry, you must have a tty to run sudo"])
def test_what_is_no_document_is_refused(text: str) -> None:
    """An answer of something else is a ParseError that quotes none of it."""
    with pytest.raises(ParseError):
        parse_readings(text)


def test_a_document_of_another_version_is_refused() -> None:
    """A node's older program must not be misread."""
    document = json.loads(
        json.dumps(
            {"version": 2, "origin": "real", "host": "h", "boot_id": "", "started": 0, "finished": 0, "probes": {}}
        )
    )
    with pytest.raises(ParseError, match="not a probe document"):
        parse_readings(json.dumps(document))


def test_evidence_of_each_probe_is_its_raw_output() -> None:
    """Command, host, time, origin and both outputs; the digest that findings name is that of the evidence."""
    probe = sh("good", "echo out; echo err >&2")
    readings = run(probe)
    evidence = readings.evidence()["good"]
    assert evidence.source == "sh -c 'echo out; echo err >&2'"
    assert b"out\n" in evidence.content
    assert b"[stderr]\nerr\n" in evidence.content
    assert readings.digests([probe, Probe("absent", ("x",))]) == (evidence.digest,)


def test_a_probe_that_did_not_measure_gives_the_reason() -> None:
    """Not run, not installed, out of time, failed: each with its own words."""
    missing, failed, late = (
        Probe("a", ("nothing",)),
        sh("b", "echo -- >&2; echo oops >&2; exit 4"),
        sh("c", "sleep 9", timeout=0.2),
    )
    readings = run(missing, failed, late)
    for probe, words in ((missing, "not installed"), (failed, "code 4: oops"), (late, "did not answer within 0.2 s")):
        with pytest.raises(UnmeasuredError, match=words):
            readings.text(probe)
    with pytest.raises(UnmeasuredError, match="did not report"):
        readings.text(Probe("d", ("d",)))


def test_root_needs_no_sudo() -> None:
    """Sudo stands in front only where it is needed."""
    assert argv_for("root", privileged=True) == ("python3", "-I", "-S", "-")
    assert argv_for("ops", privileged=True) == ("sudo", "-n", "python3", "-I", "-S", "-")
    assert argv_for("ops", privileged=False) == ("python3", "-I", "-S", "-")
