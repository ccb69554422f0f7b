"""stress_ng: wrong results, memory errors and machine checks fail; heat warns; a load that did no work proves nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.quantity import Quantity
from clusterctl.formats.host.cpu_memory_load import parse_cpu_memory_load
from clusterctl_burnin.fleet_metrics import samples
from clusterctl_burnin.node.programs import cpu_memory_load
from tests.burnin.kit import SKU
from tests.burnin.solo_kit import Document, counted, findings, loaded, package, readings

FAIL, WARN = Verdict.FAIL, Verdict.WARN


def judged(document: Document) -> list[Finding]:
    """On a node with as many processors as were loaded."""
    return findings("stress_ng", document, sku=replace(SKU, cpu_count=len(document["packages"])))


def seen(document: Document) -> list[tuple[str, Verdict]]:
    return [(found.subject, found.verdict) for found in judged(document)]


def only(document: Document) -> Finding:
    (found,) = judged(document)
    return found


def test_a_processor_that_was_not_loaded_is_unmeasured() -> None:
    """One package of two proves nothing of the other."""
    (found,) = findings("stress_ng", loaded(package(0)), sku=replace(SKU, cpu_count=2))
    assert (found.verdict, found.cause) == (Verdict.INCONCLUSIVE, "1 of 2 processors could be measured")


def test_a_recorded_run_is_understood() -> None:
    """stress-ng 0.15.06 of Debian 12: its figures are those that it wrote."""
    (reported,) = parse_cpu_memory_load(json.dumps(loaded(package(0)))).packages
    assert {name: work.done for name, work in reported.stressors.items()} == {"cpu": 1936, "vm": 11940}
    assert reported.stressors["cpu"].rate == pytest.approx(386.534387)
    assert (reported.wrong, reported.throttled, reported.machine_checks) == ((), 0, 0)


def test_work_without_an_error_passes() -> None:
    """One finding, with the slowest package's figure."""
    found = only(loaded(package(0), package(1)))
    assert found.verdict is Verdict.PASS
    assert isinstance(found.measured, Quantity)
    assert (round(found.measured.value), found.measured.unit) == (387, "bogo-ops/s")


def test_wrong_results_name_the_package() -> None:
    """Recorded while bits of stress-ng's memory were changed under it; another run may come out otherwise."""
    found = only(loaded(package(0), package(1, "stress_ng_wrong", 2)))
    assert (found.subject, found.verdict, found.deterministic) == ("cpu 1", FAIL, False)
    assert "vm: detected 497 bit errors while stressing memory" in found.cause


@pytest.mark.parametrize("errors", [{"uncorrected": 1}, {"corrected": 3}])
def test_wrong_results_are_the_modules_that_had_errors(errors: dict[str, int]) -> None:
    """One root: the memory module that EDAC saw in trouble meanwhile, not the package next to it."""
    found = only(loaded(package(0), package(1, "stress_ng_wrong", 2), after=counted(**errors)))
    assert (found.subject, found.verdict) == ("A3 (channel 1 slot 0)", FAIL)
    assert "wrong results" in found.cause


def test_memory_errors_are_judged_by_what_the_load_adds() -> None:
    """One corrected error warns, a storm of them or an uncorrected one fails, though all results were right."""
    assert seen(loaded(package(0), after=counted(corrected=1))) == [
        ("A3 (channel 1 slot 0)", WARN),
        ("node", Verdict.PASS),
    ]
    assert seen(loaded(package(0), after=counted(corrected=400))) == [("A3 (channel 1 slot 0)", FAIL)]
    assert seen(loaded(package(0), after=counted(uncorrected=1))) == [("A3 (channel 1 slot 0)", FAIL)]


def test_machine_checks_fail_and_heat_warns() -> None:
    """Both by package, by what was added under the load."""
    assert seen(loaded(package(1), after=counted(machine_checks=1))) == [("cpu 1", FAIL)]
    assert seen(loaded(package(1), after=counted(throttled=7))) == [("cpu 1", WARN), ("node", Verdict.PASS)]


@pytest.mark.parametrize(
    ("reported", "why"),
    [
        (package(0, "stress_ng_no_time"), "finished no work on vm"),
        (package(0, code=None), "was killed"),
        (package(0, code=3), "exit code 3"),
        (package(0, code=2), "exit code 2"),
        ({**package(0), "metrics": None}, "finished no work on cpu and vm"),
        ({**package(0), "metrics": "metrics: 3"}, "not understood"),
        ({**package(0), "metrics": "{"}, "no YAML"),
    ],
)
def test_a_load_that_did_no_work_proves_nothing(reported: Document, why: str) -> None:
    """Unmeasured, whatever stress-ng's exit code is."""
    found = only(loaded(reported))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert why in found.cause


BOMBS = {
    "merges": "a0: &a0 {k: v}\n" + "".join(f"a{at}: &a{at} {{<<: [*a{at - 1}, *a{at - 1}]}}\n" for at in range(1, 60)),
    "aliases": "a0: &a0 [x]\n" + "".join(f"a{at}: &a{at} [*a{at - 1}, *a{at - 1}]\n" for at in range(1, 60)),
    "depth": "metrics: " + "[" * 5000,
    "digits": f"metrics: [{{stressor: cpu, bogo-ops: {'9' * 5000}, bogo-ops-per-second-real-time: 1.0}}]",
    "date": "metrics: 2026-02-31",
    "length": "metrics: []\n" + "# more\n" * 100_000,
}
"""Figures of a hostile host. Some hundred bytes of the first two stand for more than any memory holds."""


@pytest.mark.parametrize("kind", BOMBS)
def test_hostile_figures_are_refused_before_they_are_built(kind: str) -> None:
    with pytest.raises(ParseError):
        parse_cpu_memory_load(json.dumps(loaded({**package(0), "metrics": BOMBS[kind]})))


def test_no_package_at_all_is_unmeasured() -> None:
    """Nothing was loaded, so nothing is well."""
    assert only(loaded()).verdict is Verdict.INCONCLUSIVE


def test_without_stress_ng_the_remedy_names_the_package() -> None:
    """The program's exit code 127."""
    (found,) = findings("stress_ng", "", rc=127, stderr="stress-ng: No such file or directory\n")
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "burnin_tools" in found.remedy


def test_a_counter_that_goes_back_is_not_understood() -> None:
    """The counter was reset: what was added is not known."""
    document = loaded(package(0))
    document["before"] = counted(corrected=9)
    with pytest.raises(ParseError, match="decreased from 9 to 0"):
        parse_cpu_memory_load(json.dumps(document))


def test_each_package_is_compared_with_the_fleets() -> None:
    """Who got wrong results gives no figure."""
    document = loaded(package(0), package(1, "stress_ng_wrong", 2))
    (sample,) = samples("id-1", "h100", readings("stress_ng", document))
    assert (sample.metric.name, sample.subject, sample.value) == ("stress_ng_cpu", "cpu 0", pytest.approx(386.534387))


def tree(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_cpus_are_reported_by_package_and_cores_once(tmp_path: Path) -> None:
    """Siblings of a core show one counter; a package's own is added. Without the files nothing is reported."""
    files = {}
    for cpu, (package_of, core, count) in enumerate([(0, 0, 3), (0, 1, 4), (1, 0, 9), (0, 0, 3)]):
        files[f"cpu__cpu{cpu}__topology__physical_package_id"] = f"{package_of}\n"
        files[f"cpu__cpu{cpu}__topology__core_id"] = f"{core}\n"
        files[f"cpu__cpu{cpu}__thermal_throttle__core_throttle_count"] = f"{count}\n"
        files[f"cpu__cpu{cpu}__thermal_throttle__package_throttle_count"] = "2\n"
    system = tree(tmp_path, **files)
    found = cpu_memory_load.packages([0, 1, 2, 3], system)
    assert found == {0: [0, 1, 3], 1: [2]}
    assert [cpu_memory_load.throttled(cpus, system) for cpus in found.values()] == [9, 11]
    assert cpu_memory_load.throttled([0], tmp_path / "absent") is None


def test_machine_checks_are_counted_by_cpu(tmp_path: Path) -> None:
    """The row of /proc/interrupts; null where the kernel has none."""
    rows = "            CPU0       CPU2\n  1:   5   6  IO-APIC\nMCE:          1          2   Machine check exceptions\n"
    assert cpu_memory_load.machine_checks([2], tree(tmp_path, interrupts=rows)) == 2
    assert cpu_memory_load.machine_checks([0, 2], tmp_path) == 3
    assert cpu_memory_load.machine_checks([0], tmp_path / "absent") is None


def test_modules_are_those_of_edac(tmp_path: Path) -> None:
    """By label, or by number where they have none; a counter that cannot be read is null."""
    system = tree(
        tmp_path,
        edac__mc__mc0__dimm0__dimm_label="A1\n",
        edac__mc__mc0__dimm0__dimm_ce_count="4\n",
        edac__mc__mc1__rank2__dimm_ue_count="1\n",
    )
    first, second = cpu_memory_load.modules(system)
    assert (first["name"], first["corrected"], first["uncorrected"]) == ("A1", 4, None)
    assert (second["name"], second["corrected"], second["uncorrected"]) == ("mc1 rank2", None, 1)


FAKE = """\
import os, pathlib, sys
folder = pathlib.Path(sys.argv[1])
(folder / "metrics.yaml").write_text("metrics: []")
print("cpus", sorted(os.sched_getaffinity(0)))
"""


def test_every_package_has_its_own_run_on_its_own_cpus(tmp_path: Path) -> None:
    """All at once, each kept on its CPUs; ours are as before."""
    ours = os.sched_getaffinity(0)
    one = min(ours)
    asked: list[list[str]] = []

    def run(argv: list[str], cpus: list[int], log: Path) -> subprocess.Popen[str]:
        asked.append(argv)
        return cpu_memory_load.start_on([sys.executable, "-c", FAKE, str(log.parent)], cpus, log)

    reported = cpu_memory_load.load(5, 1, {0: [one], 1: sorted(ours)}, tmp_path, run)
    assert [entry["output"] for entry in reported] == [f"cpus [{one}]", f"cpus {sorted(ours)}"]
    assert [entry["code"] for entry in reported] == [0, 0]
    assert all("--verify" in argv and argv[-1] == "5s" for argv in asked)
    assert os.sched_getaffinity(0) == ours


@pytest.mark.parametrize("words", [[], ["5"], ["5", "--vm"], ["5", "1", "1"]])
def test_the_program_takes_two_numbers(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing of a caller reaches stress-ng but them."""
    assert cpu_memory_load.main(words) == 2
    assert "two numbers" in capsys.readouterr().err
