"""`clusterctl cable burnplan` on tables that the real OpenSM made for a fabric of 64 hosts in ibsim."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from clusterctl.cabling.generate.fat_tree import PortNaming, generate
from clusterctl.cabling.generate.racks import RackLayout
from clusterctl.cabling.generate.shape import FabricSize, shape_of
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import WiringPlan
from clusterctl_cli.commands.cable_burnplan import burnplan
from tests.cabling.generate.subnet import MISSING, sweep

pytestmark = pytest.mark.skipif(MISSING, reason="ibsim-utils or opensm is missing")
WANTED = FabricSize(64, 4, 16, 3)


def tree() -> WiringPlan:
    """64 hosts of 4 rails, three tiers, 768 cables."""
    return generate(shape_of(WANTED), PortNaming(tuple(f"mlx5_{n}" for n in range(4)), twin_cages=False), RackLayout())


def record(plan: WiringPlan, folder: Path, engine: str = "ftree") -> list[str]:
    """Options that name the files of a sweep of the plan."""
    subnet = sweep(plan, WANTED.radix, folder, engine)
    (folder / "fts.gz").write_bytes(gzip.compress(subnet.tables.encode()))
    (folder / "fabric").write_text(subnet.fabric)
    return [f"--fts={folder}/fts.gz", f"--fabric={folder}/fabric"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The whole fabric, routed with ftree."""
    return record(tree(), tmp_path_factory.mktemp("whole"))


def run(*arguments: str):
    return CliRunner().invoke(burnplan, list(arguments))


def document(*arguments: str) -> dict:
    result = run(*arguments, "--json")
    assert result.exit_code in (0, 1), result.output or result.exception
    return json.loads(result.stdout)


def log_of(options: list[str]) -> str:
    return f"--opensm-log={Path(options[0].removeprefix('--fts=')).parent}/osm.log"


def test_every_link_in_one_stage(whole):
    """ftree: 1,536 of 1,536 directed links in one stage, one flow on each; exit code 0."""
    result = run(*whole, log_of(whole))
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "the burn takes 22 min of a window of 4 h",
        "tables made by ftree",
        "stage 1: 256 flows load 1536 directed links",
        *(f"pairs across {distance}: 32" for distance in ("leaf", "pod", "core") * 2),
        "1536 of 1536 directed links are loaded, each by one flow",
    ]


def test_document(whole):
    """--json: stages flow by flow, with their links by name, each link once; pairs by round."""
    found = document(*whole)
    assert (found["verdict"], found["links"], found["reached"], found["seconds"]) == ("pass", 1536, 1536, 1320)
    (stage,) = found["stages"]
    links = [link for flow in stage["flows"] for link in flow["links"]]
    assert len(links) == len(set(links)) == 1536
    assert found["coverage"] == "computed"
    assert document(*whole, "--adaptive")["coverage"] == "to be measured"
    assert [one["distance"] for one in found["rounds"]] == ["leaf", "pod", "core"] * 2


def test_cut_cables(tmp_path):
    """Two cables between switches cut: OpenSM falls back without a sign in its state; it is reported, with and without its
    log, and every link without a route is named.
    """
    plan = tree()
    trunks = [cable for cable in plan.cables if not {end.device for end in cable.ends} & plan.hosts]
    cut = {trunks[3], trunks[-40]}
    options = record(replace(plan, cables=tuple(cable for cable in plan.cables if cable not in cut)), tmp_path)
    found = document(*options, log_of(options))
    assert found["verdict"] == "fail"
    assert found["routing"]["complaint"].startswith("the subnet manager fell back to minhop: ERR AB")
    assert "as after a silent fall-back" in document(*options)["routing"]["complaint"]
    loaded = {link for stage in found["stages"] for flow in stage["flows"] for link in flow["links"]}
    named = {one["link"] for one in found["unreached"]}
    assert found["links"] == 1536 - 2 * 2 == len(loaded) + len(named)
    assert found["reached"] == len(loaded)
    assert loaded.isdisjoint(named)
    assert named
    for stage in found["stages"]:
        links = [link for flow in stage["flows"] for link in flow["links"]]
        assert len(links) == len(set(links))
    people = run(*options)
    assert people.exit_code == 1
    assert min(named) in people.stdout


def test_beyond_the_window(whole):
    """The duration is printed, then refused: exit code 2."""
    result = run(*whole, "--window", "20min")
    assert result.stdout == "the burn takes 22 min of a window of 20 min\n"
    assert isinstance(result.exception, UsageError)
    assert "--stage" in result.exception.remedy


def test_every_pair(whole):
    """Each with each is refused for 64 hosts."""
    assert isinstance(run(*whole, "--every-pair").exception, UsageError)


@pytest.mark.parametrize("span", ["4", "0h", "-1h", "4 weeks", ""])
def test_spans(whole, span):
    """What is no span of time is wrong usage."""
    assert run(*whole, f"--window={span}").exit_code == 2


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", gzip.compress(b"x" * 500, mtime=0)[:40], b"x" * 100_000])
def test_bad_input_is_2(whole, tmp_path, content):
    """Tables that are empty, binary, cut off or endless: wrong usage, with the file's name."""
    file = tmp_path / "fts"
    file.write_bytes(content)
    error = run(f"--fts={file}", whole[1]).exception
    assert isinstance(error, UsageError)
    assert str(file) in error.where
    assert error.remedy
