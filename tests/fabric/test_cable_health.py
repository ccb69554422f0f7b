"""`clusterctl cable health`: exit codes, the time between readings, and the two faces of its answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from clusterctl.fleet.errors import UsageError
from clusterctl.formats.site.fabric_limits import parse_fabric_limits
from clusterctl_burnin.limits.fabric_reading import shipped_fabric_limits
from clusterctl_burnin.package_data import text_of
from clusterctl_cli.commands.cable_health import health
from tests.formats.infiniband import printers

FABRIC = printers.two_switches()
ILL = {FABRIC.links[0].b: {"SymbolErrorCounter": 50}}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    quiet = printers.ibqueryerrors(FABRIC, {})
    texts = {
        "fabric": printers.ibnetdiscover(FABRIC),
        "before": "# 2026-01-31T08:00:00Z\n" + quiet,
        "after": "# 2026-01-31T08:12:00Z\n" + quiet,
        "ill": "# 2026-01-31T08:12:00Z\n" + printers.ibqueryerrors(FABRIC, ILL),
        "timeless": quiet,
        "csv": printers.db_csv(FABRIC),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(files: Path, before: str, after: str, *more: object, fabric: str = "fabric"):
    args = ["--before", files / before, "--after", files / after, *(["--fabric", files / fabric] if fabric else [])]
    return CliRunner().invoke(health, [str(arg) for arg in (*args, *more)])


def test_healthy_is_0(files):
    """All links proven: exit code 0, the counts, and the limits; what was not measured is reported."""
    result = run(files, "before", "after", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document.pop("limits") == {"name": "ndr", "digest": shipped_fabric_limits("ndr").digest}
    assert "temperatures of transceivers" in document.pop("not_measured")
    assert document == {
        "verdict": "pass",
        "groups": [],
        "links": 6,
        "proven": 6,
        "bad": 0,
        "seconds": 720,
        "proven_ber": 1e-14,
        "stop": "",
        "findings": [],
    }


def test_findings_are_1(files):
    """A bad link: exit code 1, one finding with all its keys; above a tenth of all links the fabric-wide stop."""
    result = run(files, "before", "ill", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    (finding,) = document["findings"]
    assert (finding["kind"], finding["verdict"], finding["links"]) == ("bit_errors", "fail", 1)
    assert finding["ports"] == [{"device": "node001", "port": "mlx5_0"}, {"device": "leaf-1", "port": "1"}]
    assert finding["counters"][0]["added"] == 50
    assert document["stop"].startswith("1 of 6 links are bad (16.7 %")


def test_rates(files):
    """With --rates every port of every cable is in the document."""
    document = json.loads(run(files, "before", "ill", "--json", "--rates").stdout)
    (ill,) = [port for port in document["ports"] if port["errors_per_second"]]
    assert len(document["ports"]) == 12
    assert (ill["device"], ill["gbps"], ill["sent_gbps"]) == ("node001", 400, None)
    assert ill["errors_per_second"] == {"SymbolErrorCounter": 50 / 720}


def test_for_people(files):
    """People read cause and action, then the counts."""
    result = run(files, "before", "ill")
    assert "FAIL bit errors: the link node001 mlx5_0 – leaf-1 port 1" in result.stdout
    assert "→ node001 mlx5_0: clean and reseat" in result.stdout
    assert "5 of 6 links are proven healthy to a bit error rate below 1e-14" in result.stdout


def test_too_short_is_1(files):
    """Nothing found is not enough: what was not proven is not healthy."""
    assert run(files, "before", "after", "--seconds", 60).exit_code == 1


@pytest.mark.parametrize(
    ("before", "after", "fabric", "why"),
    [
        ("timeless", "after", "fabric", "the time of this reading is not known"),
        ("after", "before", "fabric", "is not after the one before"),
        ("before", "after", "", "does not show which ports are linked"),
        ("before", "fabric", "fabric", "not understood"),
        ("before", "after", "before", "no device in it"),
    ],
)
def test_bad_input_is_2(files, before, after, fabric, why):
    """Readings that cannot be judged are the input's fault, never a healthy fabric."""
    result = run(files, before, after, fabric=fabric)
    assert isinstance(result.exception, UsageError)
    assert why in result.exception.message


def test_db_csv_needs_no_fabric(files):
    """A db_csv has its links itself; without counters in it nothing is proven."""
    result = run(files, "csv", "csv", "--seconds", 900, "--json", fabric="")
    assert (result.exit_code, json.loads(result.stdout)["verdict"]) == (1, "inconclusive")


def test_limits_of_ones_own(files):
    """A file next to the shipped ones is taken; an unknown name is refused with the list of known ones."""
    own = files / "own.yml"
    own.write_text(text_of("limits/fabric/ndr.yml").replace("name: ndr", "name: own").replace("1.0e-14", "1.0e-10"))
    result = run(files, "before", "ill", "--limits", own, "--json")
    assert json.loads(result.stdout)["limits"]["name"] == "own"
    assert "bit_errors" not in [
        finding["kind"] for finding in json.loads(result.stdout)["findings"] if finding["verdict"] == "fail"
    ]
    refused = run(files, "before", "ill", "--limits", "xdr")
    assert "take one of ndr" in refused.exception.remedy


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("unit: °C", "unit: K", "temperature_max.unit"),
        ("  temperature_max:", "  temperature_most:", "limits"),
        ("    value: 70\n", "", "temperature_max"),
        ("value: 10\n    unit: per second", "value: -1\n    unit: per second", "receive_errors_max.value"),
    ],
)
def test_limits_are_read_strictly(old, new, where):
    """Another unit, an unknown or a missing limit, a figure that cannot be: refused with line and field."""
    text = text_of("limits/fabric/ndr.yml")
    assert old in text
    with pytest.raises(UsageError) as caught:
        parse_fabric_limits(text.replace(old, new, 1), where="own.yml")
    assert caught.value.where.startswith("own.yml:")
    assert where in caught.value.where
