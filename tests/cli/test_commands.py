"""The commands of every day: the fleet, one node, why, release, report; and the messages for wrong input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clusterctl.fleet.codec import report_to_data
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Evidence, Finding, Origin, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.operations.context import open_site
from clusterctl_cli import main as program
from clusterctl_cli.command_groups import COMMANDS
from clusterctl_cli.main import cli
from tests.edges.site.ready import write_ready_site
from tests.events import new_event
from tests.steps.fakes import NOW, identified

SHEET = "name,bmc_address,serial,rack,unit\nn1,10.0.0.1,S1,A01,4\nn2,10.0.0.2,S2,A01,12\nn3,10.0.0.3,S3,A02,4\n"
PROOF = Evidence("nvidia-smi -q", "n1", NOW, Origin.REAL, b"Attached GPUs : 7\n")
CAUSE = Finding(
    check="gpu_count",
    verdict=Verdict.FAIL,
    code=Code.GPU_COUNT,
    subject="gpu 3",
    cause="7 of 8 GPUs",
    measured="7",
    expected="8",
    remedy="reseat GPU 3",
    serial="1650",
    evidence=(PROOF.digest,),
)
FOLLOWS = Finding(
    check="nvlink", verdict=Verdict.FAIL, code=Code.NVLINK_DOWN, subject="gpu 3", cause="no links", root=CAUSE.key
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site of three nodes: n1 in quarantine at burnin, n2 discovered, n3 never touched."""
    folder = tmp_path / "site"
    write_ready_site(folder)
    (folder / "bmcs.csv").write_text(SHEET)
    journal = open_site(folder).journal
    identified(journal, "n1", "S1", "cabled")
    identified(journal, "n2", "S2")
    journal.store([PROOF])
    report = report_to_data(Report("burnin", "bootstrap", (CAUSE, FOLLOWS), frozenset({Origin.REAL})))
    stop = {"step": "burnin", "cause": CAUSE.cause, "remedy": CAUSE.remedy, "verdict": "fail"}
    journal.append(
        [
            new_event("node", "id-n1", Kind.REPORT_RECORDED, {"report": report}, (PROOF.digest,)),
            new_event("node", "id-n1", Kind.NODE_QUARANTINED, stop),
        ]
    )
    journal.close()
    return folder


def run(site: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, [*words, "--site", str(site)], catch_exceptions=False)


def test_nodes_lists_the_fleet_and_what_was_never_touched(site: Path) -> None:
    """Every node of the site is there, the untouched one too, with its stage and reason."""
    lines = run(site, "nodes").stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:4]] == [["n1", "quarantined"], ["n2", "discovered"], ["n3", "seen"]]
    assert "7 of 8 GPUs" in lines[1]
    assert "1 quarantined, 1 discovered, 1 seen" in lines[-1]


def test_nodes_json_keeps_its_contract(site: Path) -> None:
    """The keys that others build on are there, and one document stands on stdout."""
    nodes = json.loads(run(site, "nodes", "--json").stdout)["nodes"]
    assert {"name", "stage", "verdict", "since", "cause", "remedy"} <= nodes[0].keys()
    assert (nodes[0]["verdict"], nodes[0]["remedy"]) == ("fail", "reseat GPU 3")
    assert json.loads(run(site, "nodes", "-l", "stage=gold", "--json").stdout) == {"nodes": []}


def test_why_names_cause_part_remedy_and_evidence(site: Path) -> None:
    """Plain words: what, which part, measured and expected, what to do, what it rests on, what follows from it."""
    text = run(site, "why", "n1").stdout
    for words in ("7 of 8 GPUs", "gpu 3 (serial 1650)", "reseat GPU 3", "nvidia-smi -q", "follows from it: nvlink"):
        assert words in text
    findings = json.loads(run(site, "why", "n1", "--json").stdout)["nodes"][0]["findings"]
    assert [finding["check"] for finding in findings] == ["gpu_count"]


def test_evidence_comes_back_raw(site: Path) -> None:
    """The digest that `why` shows prints the evidence as it was."""
    assert run(site, "nodes", "n1", "--evidence", PROOF.digest[:12]).stdout_bytes == PROOF.content


def test_node_prints_its_history(site: Path) -> None:
    """One line an event, in order, in words."""
    text = run(site, "nodes", "n1").stdout
    assert text.index("in the site: n1") < text.index("QUARANTINED at burnin: 7 of 8 GPUs")


def test_plan_prints_what_would_be_destroyed(site: Path) -> None:
    """Each node's way, and the disk that would be overwritten; a quarantined node is left alone."""
    rows = {row["name"]: row for row in json.loads(run(site, "plan", "--json").stdout)["nodes"]}
    assert rows["n1"]["would"].startswith("nothing")
    assert "root disk DISK-S2 (serial S2)" in rows["n2"]["destructive"]
    assert rows["n3"]["would"].startswith("discover → install")


def test_release_sends_a_node_back_with_a_reason(site: Path) -> None:
    """The released node stands before the step that stopped it; its history has the operator and the reason."""
    assert run(site, "release", "n1", "--reason", "GPU 3 reseated", "--yes").exit_code == 0
    assert json.loads(run(site, "nodes", "n1", "--json").stdout)["nodes"][0]["stage"] == "cabled"
    assert "released to cabled: GPU 3 reseated" in run(site, "nodes", "n1").stdout


def test_the_report_groups_by_rack(site: Path) -> None:
    """The acceptance report names what stopped, by rack, with part, figures, remedy and evidence."""
    text = run(site, "report").stdout
    assert "### A01" in text
    assert "**reseat GPU 3**" in text
    assert json.loads(run(site, "report", "--json").stdout)["counts"] == {"quarantined": 1, "discovered": 1}


def test_a_dry_run_changes_nothing(site: Path) -> None:
    """`bootstrap --dry-run` prints the plan and writes no event."""
    before = (site / "state" / "journal.db").read_bytes()
    assert "discover → install" in run(site, "bootstrap", "--dry-run").stdout
    assert (site / "state" / "journal.db").read_bytes() == before


def test_disks_are_not_overwritten_unasked(site: Path) -> None:
    """Without `--yes` bootstrap asks, and a no ends it."""
    answer = CliRunner().invoke(cli, ["bootstrap", "--site", str(site)], input="n\n")
    assert "overwrite their root disks" in answer.output
    assert answer.exit_code == 1


WRONG = [
    (["why", "n9"], "no node matches 'n9'"),
    (["retire", "n3", "--reason", "x", "--yes"], "the journal has no event of n3 yet"),
    (["nodes", "x*"], "no node matches 'x\\*'"),
    (["why", "-l", "rack=Z9"], "no node meets 'rack=Z9'"),
    (["nodes", "-l", "stage=silver"], "'silver' is no stage"),
    (["nodes", "-l", "colour=red"], "'colour=red' is no selector"),
    (["nodes", "n1", "n2", "--part", "gpu3"], "are about one node"),
    (["release", "n2", "--reason", "x", "--yes"], "nothing holds n2"),
    (["nodes", "n1", "--evidence", "ffff"], "0 pieces of evidence"),
    (["bootstrap", "--partner", "n2"], "n2 cannot be a partner: discovered"),
]


@pytest.mark.parametrize(("words", "message"), WRONG)
def test_wrong_words_are_named(site: Path, words: list[str], message: str) -> None:
    """A name, pattern or digest that fits nothing is an error with a remedy."""
    with pytest.raises(UsageError, match=message) as caught:
        run(site, *words)
    assert caught.value.remedy


def clusterctl(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "clusterctl_cli.main", *words], capture_output=True, text=True, check=False
    )


def test_errors_end_with_exit_code_2_and_words(tmp_path: Path) -> None:
    """Wrong input: exit code 2, the file named, what to do; as JSON on stderr where asked."""
    plain = clusterctl("plan", "--site", str(tmp_path))
    assert (plain.returncode, plain.stdout) == (2, "")
    assert "site.yml: does not exist" in plain.stderr
    assert "clusterctl init" in plain.stderr
    error = json.loads(clusterctl("nodes", "--json", "--site", str(tmp_path)).stderr)["error"]
    assert error.keys() == {"kind", "message", "where", "remedy"}


def test_every_command_has_help() -> None:
    """Each command that `--help` lists exists and explains itself."""
    for name in COMMANDS:
        answer = CliRunner().invoke(cli, [name, "--help"])
        assert answer.exit_code == 0, name
        assert "Usage" in answer.stdout


def test_an_unknown_command_is_exit_code_2() -> None:
    """A typing error is wrong usage."""
    assert clusterctl("bootsrap").returncode == 2


def test_no_command_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """The program's name alone is wrong usage, answered with the help and never with a traceback."""
    assert program.run([]) == 2
    printed = capsys.readouterr()
    assert (printed.out, "Usage: clusterctl" in printed.err) == ("", True)
