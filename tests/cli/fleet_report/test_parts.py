"""What a report takes from evidence and limits: excerpts, pairs and rails, the figures behind a verdict."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.fleet_report import AT, pair_evidence
from clusterctl.fleet.finding import Evidence, Finding, Origin, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, at_most
from clusterctl.fleet.reporting.figures import ReportFigure, Value
from clusterctl.operations.excerpts import LINES, WIDTH, excerpt, fabric_excerpt
from clusterctl.operations.node_case import _judged_by
from clusterctl.operations.reports import PairReadings
from clusterctl_burnin.limits.reading import Behind, limits_behind, shipped_limits
from clusterctl_burnin.recordings.pair_figures import PairFigure, pair_figure
from clusterctl_cli.fleet_report.pairs import pairs
from clusterctl_cli.fleet_report.strips import strip

LIMITS = shipped_limits("h100-sxm-ndr400")
FAILED = Finding(
    check="gpu_idle",
    verdict=Verdict.FAIL,
    code=Code.GPU_TOO_HOT,
    subject="gpu3",
    measured=Quantity(91, "°C"),
    expected=at_most(85, "°C"),
)
COMMAND = "ib_write_bw -d mlx5_3 -p 18518 -s 8388608 -n 20000 -F --report_gbits"
TABLE = (
    b" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    b" 8388608    20000            393.10             391.25		   0.005900\n"
)
CLIENT = Evidence(f"{COMMAND} 10.0.1.2", "n1", AT, Origin.REAL, b"[ok, exit code 0, 12.5 s]\n" + TABLE)


def test_an_excerpt_is_round_what_the_finding_names() -> None:
    """The head, the line that names the part, and how much is left out on either side."""
    text = "\n".join(["[ok]", *(f"line {at}" for at in range(100)), "GPU serial 1653", *("tail",) * 50])
    lines = excerpt(text.encode(), ["", "1653"]).split("\n")
    assert lines[0] == "[ok]"
    assert "GPU serial 1653" in lines
    assert [line for line in lines if line.startswith("[…")] == ["[… 98 lines]", "[… 40 lines]"]


def smi(*retired: int) -> str:
    """Output in the style of `nvidia-smi -q`: a block for each GPU."""
    rows = ["[ok, exit code 0, 1.0 s]"]
    for at, count in enumerate(retired):
        rows += [
            f"GPU 00000000:{at:02X}:00.0",
            f"    Serial Number : 165300{at}",
            *(f"    Field {n} : 0" for n in range(30)),
        ]
        rows += [f"    Correctable Error : {count}", *(f"    More {n} : 0" for n in range(30))]
    return "\n".join(rows)


def test_an_excerpt_has_the_part_and_the_line_that_failed() -> None:
    """The value in the part's own block, not the same number of the GPU before or behind it."""
    lines = excerpt(smi(7, 7, 7).encode(), ["1653001"], ["7"]).split("\n")
    assert lines[2].strip() == "Serial Number : 1653001"
    assert [line.strip() for line in lines if "Correctable" in line] == ["Correctable Error : 7"]
    assert len(lines) <= LINES + 4
    elsewhere = excerpt(smi(7, 0, 7).encode(), ["1653001"], ["7"]).split("\n")
    assert not [line for line in elsewhere if "Correctable" in line]
    assert "Serial Number : 1653001" in [line.strip() for line in elsewhere]


SMI = Path(__file__).parents[2] / "burnin/data/healthy/nvidia_smi.txt"


def test_an_excerpt_has_the_counter_and_not_the_number_of_the_gpu() -> None:
    """Recorded output, in which GPU 1 has one error: its minor number is 1, too."""
    first, _, rest = SMI.read_text().partition("GPU 00000000:43:00.0")
    before, counter, behind = rest.partition("DRAM Uncorrectable            : 0")
    content = f"{first}GPU 00000000:43:00.0{before}{counter[:-1]}1{behind}".encode()
    named, about = ["165000010001"], "gpu_ecc gpu_ecc_uncorrectable 1 uncorrectable memory error"
    assert "DRAM Uncorrectable            : 1" in excerpt(content, named, ["1"], about)
    assert "DRAM Uncorrectable            : 1" not in excerpt(content, named, ["1"])


FABRIC = """\
#
# Topology file: generated on Tue Nov 24 08:22:10 2026
#
vendid=0x2c9
switchguid=0xa1(a1)
Switch	64 "S-00000000000000a1"		# "MF0;leaf-1:MQM9700/U1" enhanced port 0 lid 6 lmc 0
[1]	"H-00000000000000b1"[1](b2) 		# "node001 mlx5_1" lid 23 4xNDR
[4]	"H-00000000000000c1"[1](c2) 		# "node004 mlx5_1" lid 24 4xNDR

vendid=0x2c9
switchguid=0xa2(a2)
Switch	64 "S-00000000000000a2"		# "MF0;leaf-2:MQM9700/U1" enhanced port 0 lid 6 lmc 0
[4]	"H-00000000000000d1"[1](d2) 		# "node004 mlx5_0" lid 25 4xNDR

vendid=0x2c9
caguid=0xc1
Ca	1 "H-00000000000000c1"		# "node004 mlx5_1"
[1](c2) 	"S-00000000000000a1"[4]		# lid 24 lmc 0 "MF0;leaf-1:MQM9700/U1" lid 6 4xNDR

vendid=0x2c9
caguid=0xd1
Ca	1 "H-00000000000000d1"		# "node004 mlx5_0"
[1](d2) 	"S-00000000000000a2"[4]		# lid 25 lmc 0 "MF0;leaf-2:MQM9700/U1" lid 6 4xNDR

vendid=0x2c9
caguid=0xe1
Ca	1 "H-00000000000000e1"		# "node004 mlx5_6"
[1](e2) 	"S-00000000000000a1"[6]		# lid 26 lmc 0 "MF0;leaf-1:MQM9700/U1" lid 6 4xNDR
"""


def test_swapped_cables_are_shown_by_the_ports_at_both_ends() -> None:
    """Device and port of each end that the finding names; no other leaf, port or adapter."""
    lines = fabric_excerpt(FABRIC.encode(), ["leaf-1 port 4", "leaf-2 port 4", "node004 mlx5_0", "node004 mlx5_1"])
    shown = [line.split("#", 1)[1].strip() for line in lines.split("\n") if not line.startswith("[…")]
    assert shown == [
        '"MF0;leaf-1:MQM9700/U1" enhanced port 0 lid 6 lmc 0',
        '"node004 mlx5_1" lid 24 4xNDR',
        '"MF0;leaf-2:MQM9700/U1" enhanced port 0 lid 6 lmc 0',
        '"node004 mlx5_0" lid 25 4xNDR',
        '"node004 mlx5_1"',
        'lid 24 lmc 0 "MF0;leaf-1:MQM9700/U1" lid 6 4xNDR',
        '"node004 mlx5_0"',
        'lid 25 lmc 0 "MF0;leaf-2:MQM9700/U1" lid 6 4xNDR',
    ]
    assert lines.split("\n")[0] == "[… 5 lines]"
    assert lines.split("\n")[-1] == "[… 5 lines]"


@pytest.mark.parametrize("ends", [[], ["fabric"], ["leaf-9 port 4"], ["leaf-1 port 40"], ["node004"]])
def test_an_end_that_the_output_does_not_have_shows_nothing(ends: list[str]) -> None:
    """Then the sheet shows the usual excerpt."""
    assert fabric_excerpt(FABRIC.encode(), ends) == ""


def test_only_the_limit_that_failed_is_shown() -> None:
    """A check that judges by several figures names the one behind the finding's bound."""
    behind = [
        Behind("gpu_temperature_max", "85", "°C", "datasheet"),
        Behind("gpu_power_min", "600", "W", "datasheet"),
    ]
    assert [one.name for one in _judged_by(FAILED, behind)] == ["gpu_temperature_max"]
    assert _judged_by(replace(FAILED, expected="present"), behind) == ()


def test_counts_have_an_axis_of_integers() -> None:
    """A bar for each count; no bar is near 2.381."""
    values = [Value(f"n{at}", "gpu0", float(at % 4), bad=False) for at in range(12)]
    drawn = strip(ReportFigure("gpu_ecc", "h100", "", None, tuple(values)))
    assert [bar.description for bar in drawn.bars] == ["3 at 0", "3 at 1", "3 at 2", "3 at 3"]
    assert (drawn.low, drawn.high) == (0, 5)


def test_short_output_is_shown_whole_and_long_lines_are_cut() -> None:
    """Bytes that are no text cannot break it."""
    assert excerpt(b"a\nb\n", []) == "a\nb"
    assert excerpt(b"\xff" + b"x" * 500, []).endswith("…")
    assert len(excerpt(b"x" * 500, [])) == WIDTH
    assert len(excerpt(b"\n".join([b"x"] * 500), ["nowhere"]).split("\n")) <= LINES + 2


def test_a_client_reports_pair_rail_and_rate() -> None:
    """By its command and its table; the server is named by its address."""
    assert pair_figure(CLIENT, {"10.0.1.2": "n2"}) == PairFigure("n1", "n2", 3, "mlx5_3", 391.25)
    assert pair_figure(CLIENT, {}) == PairFigure("n1", "10.0.1.2", 3, "mlx5_3", 391.25)


@pytest.mark.parametrize(
    "evidence",
    [
        replace(CLIENT, source=COMMAND),
        replace(CLIENT, source="nvidia-smi -q"),
        replace(CLIENT, content=b"[timeout, exit code None, 60 s]\n" + TABLE),
        replace(CLIENT, content=b"[ok, exit code 1, 1 s]\n" + TABLE),
        replace(CLIENT, content=b"[ok, exit code 0, 1 s]\nnothing"),
        replace(CLIENT, content=TABLE),
    ],
)
def test_a_load_without_pairs_reports_none(evidence: Evidence) -> None:
    """A server, another tool, a hung or failed client, no table."""
    assert pair_figure(evidence, {}) is None


def test_the_matrix_has_the_slowest_rail_of_each_pair() -> None:
    """Rails below the limit are listed by themselves, the slowest first; without measurements there is no matrix."""
    fast = PairFigure("n1", "n2", 0, "mlx5_0", 392.0)
    measured = (fast, replace(fast, rail=1, value=200.0), replace(fast, rail=2, value=210.0))
    found = pairs(PairReadings(measured, 380.0, 0, whole=True))
    assert found is not None
    assert [(cell.slowest, cell.below) for cell in found.matrix.cells] == [(200.0, True)]
    assert [one.rail for one in found.slow] == [1, 2]
    assert found.measured == 3
    assert pairs(PairReadings((), 380.0, 0, whole=True)) is None


def test_the_kit_measures_what_it_promises() -> None:
    """The benchmark's evidence is laid out as a burn-in lays it out."""
    for item, speed in pair_evidence(0, random.Random(1), slow=True):
        figure = pair_figure(item, {})
        assert figure is not None
        assert figure.value == pytest.approx(speed, abs=0.01)


def test_a_figure_behind_a_verdict_has_unit_and_source() -> None:
    """As the limits file has them; a version has no unit; a check without figures has none behind it."""
    (one,) = limits_behind("ib_write_bw", LIMITS)
    assert (one.name, one.unit, bool(one.source)) == ("ib_write_bw_min", "Gb/s", True)
    (version,) = limits_behind("hca_firmware", LIMITS)
    assert (version.value, version.unit) == (LIMITS.versions["hca_firmware_min"].value, "")
    assert limits_behind("identity", LIMITS) == ()
