"""A site of three nodes whose journal was written by hand, for tests of commands."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from click.testing import CliRunner, Result

from clusterctl.fleet.codec import report_to_data
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Evidence, Finding, Origin, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.operations.context import SiteContext, open_site
from clusterctl_cli.main import cli
from tests.edges.site.ready import write_ready_site
from tests.events import new_event
from tests.steps.fakes import NOW, identified

SHEET = "name,bmc_address,serial,rack,unit\nn1,10.0.0.1,S1,A01,4\nn2,10.0.0.2,S2,A01,12\nn3,10.0.0.3,S3,A02,4\n"
PROOF = Evidence("GET /redfish/v1/Systems", "10.0.0.2", NOW, Origin.REAL, b'{"SerialNumber": "S9"}')
HOT = Finding(
    check="gpu_ecc",
    verdict=Verdict.FAIL,
    code=Code.GPU_ECC_UNCORRECTABLE,
    subject="gpu 3",
    cause="2 uncorrectable errors",
    remedy="replace GPU 3",
    serial="1650",
)
SWAPPED = Finding(
    check="identity",
    verdict=Verdict.FAIL,
    code=Code.WRONG_SERIAL,
    cause="serial S9 answers",
    serial="S9",
    evidence=(PROOF.digest,),
)


def write(folder: Path) -> Path:
    """n1 gold with a published address, n2 cabled and in quarantine at burn-in by its GPU 3, n3 never touched."""
    site = folder / "site"
    write_ready_site(site)
    (site / "bmcs.csv").write_text(SHEET)
    journal = open_site(site).journal
    identified(journal, "n1", "S1", "gold")
    journal.append([new_event("node", "id-n1", Kind.NODE_ADDRESSED, {"address": "10.0.1.1"})])
    identified(journal, "n2", "S2", "cabled")
    journal.append(quarantined("n2", "burnin", HOT))
    journal.close()
    return site


def quarantined(name: str, step: str, finding: Finding) -> list[NewEvent]:
    """What a step writes that stops a node by `finding`."""
    report = report_to_data(Report(step, "bootstrap", (finding,), frozenset({Origin.REAL})))
    stop = {"step": step, "cause": finding.cause, "remedy": finding.remedy, "verdict": "fail"}
    return [
        new_event("node", f"id-{name}", Kind.REPORT_RECORDED, {"report": report}, finding.evidence),
        new_event("node", f"id-{name}", Kind.NODE_QUARANTINED, stop),
    ]


def append(site: Path, events: Iterable[NewEvent], evidence: Iterable[Evidence] = ()) -> None:
    """Write what some earlier run would have written."""
    context = open_site(site)
    context.journal.store(evidence)
    context.journal.append(list(events))


def run(site: Path, *words: str, typed: str = "") -> Result:
    """The command as an operator types it; errors are raised as they are, `return_value` is its exit code."""
    return CliRunner().invoke(
        cli, [*words, "--site", str(site)], input=typed, catch_exceptions=False, standalone_mode=False
    )


def seq(site: Path) -> int:
    """How much stands in the journal."""
    context: SiteContext = open_site(site)
    return max(state.last_seq for state in context.journal.states())
