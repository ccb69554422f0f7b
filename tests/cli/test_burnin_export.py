"""burnin export: what a burn-in recorded, as burnin judge reads it; the verdicts are the same there and back."""

from __future__ import annotations

import json
import shlex
import stat
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from clusterctl.fleet.codec import inventory_to_data, report_to_data
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.finding import Digest, Evidence, Finding, Origin, Report
from clusterctl.operations.context import open_site
from clusterctl.operations.json_documents import finding_json
from clusterctl.operations.judging import Judge
from clusterctl_burnin import watch
from clusterctl_burnin.probe import Probe, ProbeResult, Readings, Status
from clusterctl_burnin.recordings.export import result_in
from clusterctl_burnin.recordings.session import session_evidence
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.suites.suite import shipped_suite
from clusterctl_burnin.sweep import judge
from clusterctl_cli.main import run as command
from tests.burnin import kit
from tests.cli.site_of_three import append, run, write
from tests.events import data_of, new_event

SKU = "dell-xe9680-h100"
LOAD = Evidence("ib_write_bw -d mlx5_0 -p 18515", "node001", kit.START, Origin.REAL, b"[ok, exit code 0, 1 s]\n396")
LOADS = tuple(load.name for load in shipped_suite().solo)
"""Of one node, which these recordings have no answers of."""
WATCHING = [p for p in watch.probes(CHECKS.values()) if p not in {q for check in CHECKS.values() for q in check.probes}]
"""Probes that only the watch of a load asks."""
DEAF = kit.result("swapon", "", rc=None, status=Status.TIMEOUT)
LOUD = kit.result("docker_root", "", rc=1, stderr="permission denied")


def recorded(site: Path, readings: Readings, *, session: bool = True) -> tuple[Finding, ...]:
    """What a burn-in of n1 with these answers writes into the journal; its checks' findings."""
    kind = Judge(Path("/nonexistent")).kind(SKU, Path("n1.json"))
    sent, received = kit.START, kit.START + timedelta(seconds=5)
    expected = kit.expected(name="n1", sku=kind.sku, limits=kind.limits, sent=sent, received=received)
    judged = judge(shipped_suite().checks, readings, expected)
    messages = [session_evidence(readings, sent, received, expected.driver_version, shipped_suite())] if session else []
    evidence = (*messages, *judged.evidence, LOAD)
    report = report_to_data(Report("burnin", "bootstrap", judged.findings, frozenset({Origin.REAL})))
    known = {"inventory": inventory_to_data(kit.INVENTORY), "sku": SKU, "root_disk": "D"}
    digests = tuple(item.digest for item in evidence)
    events = [
        new_event("node", "id-n1", Kind.NODE_IDENTIFIED, known),
        new_event("node", "id-n1", Kind.REPORT_RECORDED, {"report": report}, digests),
        new_event("node", "id-n1", Kind.NODE_IDENTIFIED, known | {"sku": "another", "root_disk": ""}),
    ]
    append(site, events, evidence)
    return judged.findings


def plain(finding: Mapping[str, Any] | Finding) -> tuple[Any, ...]:
    """Return the content of a verdict, of a finding or of its JSON."""
    keys = ("check", "code", "subject", "cause", "measured", "expected", "remedy", "root", "serial")
    data = finding_json(finding) if isinstance(finding, Finding) else finding
    return (data["verdict"], *(data[key] for key in keys))


def judged_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    command(["burnin", "judge", str(folder), "--site", str(folder.parent / "nowhere"), "--json"])
    (node,) = json.loads(capsys.readouterr().out)["nodes"]
    return dict(node)


@pytest.mark.parametrize("broken", [{}, {"swapon": DEAF, "docker_root": LOUD}])
def test_there_and_back_the_verdicts_are_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: dict[str, ProbeResult]
) -> None:
    """Every finding of the checks, to the word, the clock's among them; only the host's network is not judged again."""
    site, out = write(tmp_path), tmp_path / "out"
    findings = recorded(site, kit.readings(**broken))
    assert run(site, "burnin", "export", str(out), "--limit", "n1").return_value == 0
    capsys.readouterr()
    node = judged_again(out, capsys)
    assert node["not_judged"] == ["host_network", *LOADS]
    assert sorted(map(plain, node["findings"])) == sorted(plain(f) for f in findings if f.check != "host_network")


def test_a_journal_without_sessions_leaves_the_clock_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unrecorded times of the session are not invented."""
    site, out = write(tmp_path), tmp_path / "out"
    recorded(site, kit.readings(), session=False)
    run(site, "burnin", "export", str(out), "--limit", "n1")
    capsys.readouterr()
    assert judged_again(out, capsys)["not_judged"] == ["clock_offset", "host_network", *LOADS]


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    """The folder is 0700, also where it was open before; each file 0600."""
    site, out = write(tmp_path), tmp_path / "out"
    recorded(site, kit.readings())
    out.mkdir(mode=0o755)
    run(site, "burnin", "export", str(out), "--limit", "n1")
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert [(file.name, stat.S_IMODE(file.stat().st_mode)) for file in out.iterdir()] == [("n1.json", 0o600)]


def test_a_node_without_records_is_named(tmp_path: Path) -> None:
    """n2's report names no evidence, n3 never got so far: exit code 1, and no empty recordings."""
    site, out = write(tmp_path), tmp_path / "out"
    recorded(site, kit.readings())
    result = run(site, "burnin", "export", str(out), "--json")
    output = json.loads(result.stdout)
    assert result.return_value == 1
    (node,) = output["nodes"]
    assert (node["name"], node["lost"]) == ("n1", 0)
    assert set(node["left_out"]) == {LOAD.source, *(shlex.join(probe.argv) for probe in WATCHING)}
    assert {node["name"] for node in output["not_exported"]} == {"n2", "n3"}
    assert [file.name for file in out.iterdir()] == ["n1.json"]


def test_evidence_that_the_journal_lacks_is_counted(tmp_path: Path) -> None:
    """A digest without its evidence: the rest is written, with a message that it is not all."""
    site, out = write(tmp_path), tmp_path / "out"
    recorded(site, kit.readings())
    (last,) = [e for e in open_site(site).journal.history(Stream.NODE, "id-n1") if e.kind is Kind.REPORT_RECORDED]
    append(site, [new_event("node", "id-n1", last.kind, data_of(last), (*last.evidence, Digest("0" * 64)))])
    result = run(site, "burnin", "export", str(out), "--limit", "n1", "--json")
    assert (result.return_value, json.loads(result.stdout)["nodes"][0]["lost"]) == (1, 1)


def test_old_and_new_recordings_are_not_mixed(tmp_path: Path) -> None:
    """A folder with something in it is refused, and left alone."""
    site = write(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "n9.json").write_text("{}")
    with pytest.raises(UsageError, match="not empty"):
        run(site, "burnin", "export", str(tmp_path / "out"))


def test_a_folder_below_a_file_is_wrong_usage(tmp_path: Path) -> None:
    """Exit code 2, and nothing is written."""
    site = write(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="the folder cannot be made: Not a directory"):
        run(site, "burnin", "export", str(tmp_path / "file" / "out"))
    with pytest.raises(UsageError, match="the program cannot be written: "):
        run(site, "burnin", "script", "--output", str(tmp_path / "file" / "program"))


@given(
    stdout=st.text(max_size=60),
    stderr=st.text(max_size=60).filter(lambda text: "[stderr]" not in text),
    status=st.sampled_from(Status),
    rc=st.none() | st.integers(-15, 255),
    seconds=st.floats(0, 1e6, allow_nan=False),
)
def test_evidence_and_answer_are_one(stdout: str, stderr: str, status: Status, rc: int | None, seconds: float) -> None:
    """Whatever a probe answers, it is read back from its evidence to the letter."""
    assume(stderr or "[stderr]" not in stdout)  # what looks like the mark is taken for it
    reported = ProbeResult("p", ("tool", "a b"), status, rc, stdout, stderr, kit.START, seconds)
    readings = Readings("n", "b", Origin.REAL, kit.START, kit.START, {"p": reported})
    assert result_in(Probe("p", reported.argv), readings.evidence()["p"]) == reported
