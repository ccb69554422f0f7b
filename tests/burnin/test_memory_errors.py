"""memory_errors and the program that it reads: each module's errors, as the kernel counted them, and no more."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.formats.host.cpu_memory import parse_edac_counters
from clusterctl_burnin.node import bundle
from clusterctl_burnin.node.programs import edac_counters
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import expected, readings

FIRST, LAST = "CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel 0 slot 0)", "mc1 dimm0 (channel 0 slot 0)"
Change = Callable[[dict[str, Any]], None]


def found(change: Change) -> tuple[Finding, ...]:
    def edit(text: str) -> str:
        document = json.loads(text)
        change(document)
        return json.dumps(document)

    return CHECKS["memory_errors"].findings(readings(edac_counters=edit), expected())


def counted(corrected: int = 0, uncorrected: int = 0, controller: int = 0) -> Change:
    def change(document: dict[str, Any]) -> None:
        document["controllers"][controller]["modules"][0].update(corrected=corrected, uncorrected=uncorrected)

    return change


@pytest.mark.parametrize(
    ("change", "verdict", "subject", "cause"),
    [
        (counted(uncorrected=1), Verdict.FAIL, FIRST, "had 1 uncorrected errors in 25.0 hours"),
        (counted(corrected=200), Verdict.FAIL, FIRST, "more than a healthy module has"),
        (counted(corrected=200, controller=1), Verdict.FAIL, LAST, "200 corrected"),
        (counted(corrected=60), Verdict.WARN, FIRST, "had 60 corrected errors in 25.0 hours"),
        (counted(corrected=1), Verdict.WARN, FIRST, "1 corrected"),
    ],
)
def test_a_bad_module_is_named_by_its_label(change: Change, verdict: Verdict, subject: str, cause: str) -> None:
    """One finding on it. Corrected errors fail where chance alone does not explain them; fewer are a warning."""
    (finding,) = found(change)
    assert (finding.verdict, finding.subject) == (verdict, subject)
    assert cause in finding.cause
    assert "find the socket" in finding.remedy


def test_lost_data_and_a_high_rate_are_two_findings() -> None:
    """Neither hides the other."""
    assert [finding.verdict for finding in found(counted(200, 1))] == [Verdict.FAIL, Verdict.FAIL]


def test_errors_of_no_known_module_are_the_controllers() -> None:
    """Errors that the hardware could not place are reported all the same."""

    def change(document: dict[str, Any]) -> None:
        document["controllers"][1]["uncorrected_nowhere"] = 2

    (finding,) = found(change)
    assert (finding.verdict, finding.subject) == (Verdict.FAIL, "memory controller mc1")


@pytest.mark.parametrize(
    ("left", "cause"), [(0, "no driver counts memory errors"), (1, "counts the errors of 2 of 4 memory modules")]
)
def test_uncounted_errors_are_not_healthy(left: int, cause: str) -> None:
    """No EDAC driver, or one for the first socket only: INCONCLUSIVE, with what to load."""
    (finding,) = found(lambda document: document.update(controllers=document["controllers"][:left]))
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert cause in finding.cause
    assert "EDAC driver" in finding.remedy


def tree(root: Path, **files: str) -> Path:
    """A controller with one module, as sysfs shows it; `files` replace some, empty text leaves one out."""
    plain = {
        "mc0/mc_name": "Intel_10nm Socket#0 IMC#0",
        "mc0/seconds_since_reset": "120",
        "mc0/ce_noinfo_count": "0",
        "mc0/ue_noinfo_count": "0",
        "mc0/dimm3/dimm_label": "CPU_SrcID#0_MC#0_Chan#1_DIMM#1",
        "mc0/dimm3/dimm_location": "channel 1 slot 1 ",
        "mc0/dimm3/dimm_ce_count": "7",
        "mc0/dimm3/dimm_ue_count": "1",
    }
    for name, text in {**plain, **{path.replace("__", "/"): text for path, text in files.items()}}.items():
        if text:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
    return root


def test_the_program_reports_what_sysfs_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts, label and place of the module, and since when; the parser reads it."""
    edac_counters.main(tree(tmp_path))
    module, nowhere = parse_edac_counters(capsys.readouterr().out)
    assert (module.name, module.location) == ("CPU_SrcID#0_MC#0_Chan#1_DIMM#1", "channel 1 slot 1")
    assert (module.corrected, module.uncorrected, module.seconds) == (7, 1, 120)
    assert not nowhere.placed


def test_a_count_that_cannot_be_read_is_no_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A kernel that has no such file makes the check INCONCLUSIVE, naming the field."""
    edac_counters.main(tree(tmp_path, mc0__dimm3__dimm_ue_count=""))
    with pytest.raises(ParseError) as error:
        parse_edac_counters(capsys.readouterr().out)
    assert error.value.where == "edac-counters controllers.0.modules.0.uncorrected"


def test_a_node_without_edac_reports_no_controller(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty answer, which the check does not take for health."""
    edac_counters.main(tmp_path / "absent")
    assert parse_edac_counters(capsys.readouterr().out) == ()


def test_a_stand_in_goes_first_only_where_evidence_is_simulated(tmp_path: Path) -> None:
    """No program of that name on a real node's PATH is ever taken for the probe's own."""
    assert not bundle.simulated()
    bundle.BUILT_IN["sh"] = ["print()"]
    bundle.LOADER.extend(loader := ["pass", "pass"])
    try:
        assert bundle.command(["sh"])[-1] == "print()"
    finally:
        del bundle.BUILT_IN["sh"], bundle.LOADER[-len(loader) :]
