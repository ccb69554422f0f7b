"""sensor_plausible and idle_power: the values of nvidia-smi -q that no working sensor shows, and idle GPUs that draw much."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.nvidia.nvidia_smi import parse_query
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import Edit, expected, healthy_text, readings

LISTINGS = sorted((Path(__file__).parent / "data" / "nvidia_smi").glob("*.txt"))


def first(key: str, value: str) -> Edit:
    """The first GPU's value under a key."""

    def edit(text: str) -> str:
        lines = text.splitlines(keepends=True)
        at = next(number for number, line in enumerate(lines) if line.strip().startswith(key))
        lines[at] = f"{lines[at].partition(':')[0]}: {value}\n"
        return "".join(lines)

    return edit


def found(check: str, edit: Edit) -> list[tuple[str, Verdict, Code]]:
    judged = CHECKS[check].findings(readings(nvidia_smi=edit), expected())
    return [(one.subject, one.verdict, one.code) for one in judged]


@pytest.mark.parametrize("value", ["0 C", "255 C", "127 C"])
@pytest.mark.parametrize("key", ["GPU Current Temp", "Memory Current Temp"])
def test_temperatures_that_no_sensor_shows(key: str, value: str) -> None:
    assert found("sensor_plausible", first(key, value)) == [("gpu 0", Verdict.FAIL, Code.SENSOR_IMPLAUSIBLE)]


@pytest.mark.parametrize("value", ["0.00 W", "65535.00 W"])
def test_power_that_no_sensor_shows(value: str) -> None:
    assert found("sensor_plausible", first("Power Draw", value)) == [("gpu 0", Verdict.FAIL, Code.SENSOR_IMPLAUSIBLE)]


@pytest.mark.parametrize("value", ["N/A", "[Unknown Error]", "-5 C"])
def test_a_temperature_that_is_not_read_is_not_plausible(value: str) -> None:
    """No value is no healthy value."""
    assert [verdict for _, verdict, _ in found("sensor_plausible", first("GPU Current Temp", value))] == [
        Verdict.INCONCLUSIVE
    ]


def test_an_idle_gpu_that_draws_power() -> None:
    """A quarter of 700 W is the limit."""
    assert found("idle_power", first("Power Draw", "176.00 W")) == [("gpu 0", Verdict.FAIL, Code.GPU_IDLE_POWER)]
    assert [verdict for _, verdict, _ in found("idle_power", first("Power Draw", "174.00 W"))] == [Verdict.PASS]
    assert [verdict for _, verdict, _ in found("idle_power", first("Power Draw", "N/A"))] == [Verdict.INCONCLUSIVE]


@pytest.mark.parametrize("listing", LISTINGS, ids=lambda path: path.stem)
def test_listings_of_all_drivers(listing: Path) -> None:
    """Power and temperature are read of every driver's layout, R470 to R580, and are plausible."""
    for gpu in parse_query(listing.read_text()).gpus:
        assert gpu.power.draw is not None
        assert 1 <= gpu.power.draw < 200
        assert gpu.temperature is not None
        assert (gpu.slowed is not None) == (listing.stem in ("r570-h200", "r580-b200", "r580-gb200", "r580-h100"))


def test_the_healthy_node_passes() -> None:
    for check in ("sensor_plausible", "idle_power"):
        assert [verdict for _, verdict, _ in found(check, lambda text: text)] == [Verdict.PASS], healthy_text
