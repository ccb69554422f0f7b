"""clusterctl-node: one file, no library; every recorded case gets the verdict that the controller gives."""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl_burnin.host_requirements import HostRequirements
from clusterctl_burnin.kernel_log.known_lines import KnownLines
from clusterctl_burnin.node_check.build import build
from clusterctl_burnin.node_check.program import (
    CONTENT,
    UNMEASURED,
    Content,
    NodeCheck,
    NodeFacts,
    SkuFacts,
    as_data,
    exit_code,
)
from clusterctl_burnin.probe import ProbeResult, Readings, Status, parse_readings
from clusterctl_burnin.registry import CHECKS
from clusterctl_cli.main import run as command
from tests.burnin import test_checks, test_clock_and_port_checks, test_cpu_share, test_host_checks
from tests.burnin.kit import HEALTHY, LIMITS, PROBES, SKU, readings
from tests.burnin.test_malformed_output import MUTATIONS
from tests.cli.site_of_three import append, write
from tests.cli.test_burnin_export import SKU as SITE_SKU
from tests.events import new_event
from tests.steps.fakes import inventory

LEFT_OUT = ("clock_offset", "host_network")
MODULES = tuple(name for name in CHECKS if name not in LEFT_OUT)
CONTENTS = Content(
    version=1,
    built="test",
    checks=MODULES,
    left_out=LEFT_OUT,
    nodes={"node001": NodeFacts(serial="LAB0001", sku="two", driver_version="550.127.08")},
    skus={"two": SkuFacts(sku=SKU, limits=LIMITS)},
    requirements=HostRequirements(),
    known_lines=KnownLines(frozenset({"frob <n>"}), ("^widget .*spare",)),
)
PYTHONS = [sys.executable, *filter(None, map(shutil.which, ("python3.10", "python3.12", "python3.13")))]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("node") / "clusterctl-node"
    file.write_bytes(build(CONTENTS))
    return file


def run_on_node(
    program: Path, *argv: str, python: str = sys.executable, path: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run it as on a node: without site-packages, environment or the checkout."""
    words = [python, "-I", "-S", str(program), "check", *argv]
    environment = {"PATH": path or os.environ["PATH"]}
    return subprocess.run(words, capture_output=True, text=True, timeout=600, env=environment, cwd="/", check=False)


def document(found: Readings) -> str:
    """Return the readings as the node's probes print them."""

    def probe(one: ProbeResult) -> Mapping[str, Any]:
        stdout = one.stdout.encode(errors="replace").decode()  # as the node decodes what its tools print
        head = {"argv": one.argv, "status": one.status.value, "rc": one.rc, "stdout": stdout, "stderr": one.stderr}
        return {**head, "started": one.started.timestamp(), "seconds": one.seconds}

    probes = {name: probe(one) for name, one in found.probes.items()}
    times = {"started": found.started.timestamp(), "finished": found.finished.timestamp()}
    head = {"version": 1, "origin": found.origin.value, "host": found.host, "boot_id": found.boot_id}
    return json.dumps({**head, **times, "probes": probes})


def recorded() -> Iterator[Readings]:
    """Yield the healthy node, every fault of the checks' tests, and malformed output of every probe."""
    yield readings()
    for case in (*test_checks.CASES, *test_clock_and_port_checks.CASES, *test_host_checks.CASES):
        if getattr(case, "broken", None):
            yield readings(**case.broken)
    for text in test_cpu_share.DOCUMENTS.values():
        yield readings(cpu_share=lambda _, text=text: text)  # type: ignore[misc]
    chance = random.Random(21)
    for name in PROBES:
        text = (HEALTHY / f"{name}.txt").read_text()
        for mutation in MUTATIONS:
            yield readings(**{name: lambda healthy, m=mutation: m(healthy, chance)[:20_000]})  # type: ignore[misc]
        gone = readings()
        yield replace(gone, probes={one: answer for one, answer in gone.probes.items() if one != name})
        lost = replace(gone.probes[name], status=Status.TIMEOUT, rc=None, stdout=text[:40])
        yield replace(gone, probes={**gone.probes, name: lost})
        if text.lstrip().startswith(("{", "[")):
            yield readings(**{name: lambda healthy: healthy.replace("1", '"1"')})
            yield readings(**{name: lambda healthy: healthy.replace("0", "0.0")})


def verdicts(findings: list[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Return all of the findings but their prose."""
    return [tuple(one[name] for name in ("check", "verdict", "code", "subject", "serial", "root")) for one in findings]


def on_the_controller(found: Readings) -> list[Finding]:
    return list(NodeCheck(CONTENTS, "node001").judged(found))


def test_the_node_gives_the_controllers_verdict_on_every_recorded_case(program: Path, tmp_path: Path) -> None:
    """Check by check: verdict, code, part and root are the same, whatever the probes printed."""
    cases = [text for text in map(document, recorded()) if json.loads(text)]
    file = tmp_path / "cases.jsonl"
    file.write_text("".join(f"{text}\n" for text in cases))
    ran = run_on_node(program, "--node", "node001", "--judge", str(file))
    assert ran.returncode == 1, ran.stderr[-2000:]
    answers = ran.stdout.splitlines()
    assert len(answers) == len(cases) > 400
    different = []
    for text, answer in zip(cases, answers, strict=True):
        here = [as_data(finding) for finding in on_the_controller(parse_readings(text))]
        there = verdicts(json.loads(answer)["findings"])
        different += [pair for pair in zip(there, verdicts(here), strict=True) if pair[0] != pair[1]]
    assert different == []


@pytest.mark.parametrize("python", PYTHONS)
def test_each_python_of_the_nodes_judges_alike(program: Path, tmp_path: Path, python: str) -> None:
    """3.10 of Ubuntu 22.04 to the newest that is here; the healthy node passes what it can prove on it."""
    if not subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 10))"], check=False).returncode:
        file = tmp_path / "healthy.jsonl"
        file.write_text(f"{document(readings())}\n")
        ran = run_on_node(program, "--node", "node001", "--judge", str(file), python=python)
        assert ran.stdout, ran.stderr[-2000:]
        here = [as_data(finding) for finding in on_the_controller(parse_readings(document(readings())))]
        assert verdicts(json.loads(ran.stdout)["findings"]) == verdicts(here)
        assert {one["check"] for one in json.loads(ran.stdout)["findings"]} == set(MODULES)


def test_it_holds_no_library_and_no_controller(program: Path) -> None:
    """Only our pure modules, standard library apart: no edges, steps or operations, and the same bytes each time."""
    names = zipfile.ZipFile(program).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"__main__.py", "clusterctl", "clusterctl_burnin"}
    assert not [name for name in names if name.startswith(("clusterctl/edges", "clusterctl/steps", "clusterctl/oper"))]
    modules = [name for name in names if name.endswith(".py")]
    trees = [ast.parse(zipfile.ZipFile(program).read(name)) for name in modules]
    imported = {
        name.partition(".")[0]
        for tree in trees
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    libraries = imported - sys.stdlib_module_names - {"clusterctl", "clusterctl_burnin"}
    assert libraries <= {"torch", "numpy"}, libraries  # of GPU loads, which travel as texts and are not imported
    assert build(CONTENTS) == program.read_bytes()


def test_it_runs_its_probes(program: Path) -> None:
    """On this machine, which is no such node: findings of each check, and the exit code of the worst one."""
    ran = run_on_node(program, "--node", "node001", "--json")
    answer = json.loads(ran.stdout)
    assert {one["check"] for one in answer["findings"]} == set(MODULES)
    assert ran.returncode == (1 if answer["verdict"] == "fail" else UNMEASURED)
    assert sorted(answer["left_out"]) == sorted(LEFT_OUT)


def test_probes_that_do_not_end_are_unmeasured(program: Path) -> None:
    """After --seconds nothing is waited for: exit code 4, never 1."""
    ran = run_on_node(program, "--node", "node001", "--json", "--seconds", "0.05")
    assert ran.returncode == UNMEASURED, ran.stdout[-300:] + ran.stderr[-300:]
    assert {one["verdict"] for one in json.loads(ran.stdout)["findings"]} == {"inconclusive"}


def test_it_runs_without_path_and_environment(program: Path) -> None:
    """Slurmd starts its programs so, and Python then does not know its own name: each check has a finding."""
    words = ["python3", str(program), "check", "--node", "node001", "--json", "--quick"]
    python = Path(sys.executable).resolve()
    ran = subprocess.run(words, executable=python, env={}, capture_output=True, text=True, timeout=600, check=False)
    found = json.loads(ran.stdout)["findings"]
    assert ran.stderr == ""
    assert {"no_session", "not_measured"}.isdisjoint(one["code"] for one in found if one["check"] == "swap_off")


@pytest.mark.parametrize(("command", "code"), [("check", 3), ("health", 0), ("prolog", 0), ("epilog", 0)])
def test_a_python_that_is_too_old_fails_no_node(program: Path, command: str, code: int) -> None:
    """The text that any Python runs first ends with 3, never with 1; as Slurm's program with 0."""
    main_text = zipfile.ZipFile(program).read("__main__.py").decode()
    ast.parse(main_text, feature_version=(3, 4))
    older = f"import sys, runpy; sys.version_info = (3, 8, 18); runpy.run_path({str(program)!r}, run_name='__main__')"
    ran = subprocess.run([sys.executable, "-c", older, command], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (code, "")
    assert "3.10 or later" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_what_it_cannot_go_on_with_is_no_failure_of_the_node(program: Path, tmp_path: Path) -> None:
    """A file that is not there, and a reader that has gone: 3, and the code of the verdict."""
    ran = run_on_node(program, "--node", "node001", "--judge", str(tmp_path / "none"))
    assert ran.returncode == 3
    assert "Traceback" not in ran.stderr
    file = tmp_path / "healthy.jsonl"
    file.write_text(f"{document(readings())}\n")
    words = [sys.executable, "-I", "-S", str(program), "check", "--node", "node001", "--judge", str(file)]
    expected = run_on_node(program, "--node", "node001", "--judge", str(file)).returncode
    reader, writer = os.pipe()
    os.close(reader)
    gone = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (gone.returncode, gone.stderr) == (expected, "")


def test_only_a_failure_is_exit_code_1() -> None:
    """A warning is 0, unmeasured alone is 4, unmeasured together with a failure is 1."""
    (one,) = (finding for finding in on_the_controller(readings()) if finding.check == "swap_off")
    made = {verdict: replace(one, verdict=verdict) for verdict in Verdict}
    assert exit_code([made[Verdict.PASS], made[Verdict.WARN]]) == 0
    assert exit_code([made[Verdict.PASS], made[Verdict.INCONCLUSIVE]]) == UNMEASURED
    assert exit_code([made[Verdict.FAIL], made[Verdict.INCONCLUSIVE]]) == 1


def test_a_node_that_the_file_does_not_have(program: Path) -> None:
    ran = run_on_node(program, "--node", "node999")
    assert ran.returncode == 2
    assert "clusterctl burnin node-file" in ran.stderr


def test_the_command_writes_it_for_the_sites_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Executable, with the nodes whose serial is known; no file is written over."""
    site = write(tmp_path)
    seen = new_event("node", "id-n1", Kind.NODE_IDENTIFIED, {**_identified("S1"), "sku": SITE_SKU})
    append(site, [seen])
    file = tmp_path / "clusterctl-node"
    assert command(["burnin", "node-file", str(file), "--site", str(site)]) == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o755
    nodes = json.loads(zipfile.ZipFile(file).read(f"clusterctl_burnin/{CONTENT}"))["nodes"]
    assert nodes["n1"]["serial"] == "S1"
    assert command(["burnin", "node-file", str(file), "--site", str(site)]) == 2
    assert "is there already" in capsys.readouterr().err


def _identified(serial: str) -> dict[str, Any]:
    return {"inventory": inventory_to_data(inventory(serial)), "root_disk": f"DISK-{serial}"}
