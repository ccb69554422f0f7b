"""`clusterctl maintain` as an operator meets it: plans with errors, previews, what is half done, pausing and ending."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.maintenance.plan import Change, MaintenancePlan
from clusterctl.fleet.payloads.maintenance import MaintenanceTurn, PlanStage, Turn
from clusterctl.operations import runs
from clusterctl.operations.context import open_site
from clusterctl.operations.maintain import preview, resuming
from clusterctl.operations.maintenance_change import changed_site
from clusterctl.operations.maintenance_rollout import moved
from clusterctl_cli.main import cli
from tests.cli.nights import NAMES, write

PLAN = """\
name: exporter-9101
reason: the exporters' port
change:
  variables: {node_exporter_listen_address: "0.0.0.0:9101"}
waves: {canary: 2, by: nodes, size: 1}
"""


def by_pod(pods: str) -> str:
    return PLAN.replace("by: nodes", f"by: pod, pods: {pods}")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Four gold nodes; no host of them answers."""
    return write(tmp_path)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    file = tmp_path / "plan.yml"
    file.write_text(PLAN)
    return file


def maintain(site: Path, *words: str | Path) -> Result:
    return CliRunner().invoke(cli, ["maintain", *map(str, words), "--site", str(site)], standalone_mode=False)


def refused(site: Path, file: Path, text: str) -> str:
    file.write_text(text)
    done = maintain(site, file, "--dry-run")
    assert done.exception is not None
    return str(done.exception)


def test_each_wrong_field_has_its_line(site: Path, plan: Path) -> None:
    """All problems at once: file, line, field."""
    error = refused(site, plan, PLAN.replace("by: nodes", "by: shelf") + "stop_percnt: 3\n")
    assert f"{plan}:5 waves.by: must be 'rack', 'pod', 'percent' or 'nodes', found 'shelf'" in error
    assert f"{plan}:6 stop_percnt: there is no such field" in error


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (PLAN.replace("listen_address", "listen_adress"), "4 change.variables.node_exporter_listen_adress: no role"),
        (PLAN + "suite: nope\n", "6 suite: no suite is called 'nope'"),
        (PLAN + "nodes: [x*]\n", "6 nodes.0: no node of the site is called 'x*'"),
        (PLAN + "rollback: {variables: {hostname: a}}\n", "6 rollback.variables.hostname: hostname is not changed"),
        (
            PLAN.replace("change:\n", "change:\n  settings: true\n"),
            "change.settings: no SKU of the site has a baseline",
        ),
        (PLAN.replace("change:\n", "change:\n  roles: [nvidia_driver]\n"), "requires nvidia_repository_url"),
        (PLAN.replace("by: nodes, size: 1", "by: percent, size: 101"), "5 waves.size: must be 100 at most"),
        (PLAN.replace("by: nodes", "by: pod"), "by: pod and pods go together"),
        (by_pod("{p1: [A01], p2: ['B*']}"), "5 waves.pods.p2.0: no rack of the site is called 'B*'"),
        (by_pod("{p1: ['A*'], p2: [A01]}"), "5 waves.pods.p2: rack A01 is in pod p1, too"),
        (PLAN + "nodes: []\n", "6 nodes: must name at least 1"),
        (PLAN + "select: []\n", "6 select: must name at least 1"),
        (PLAN + "select: [rack=Z99]\n", "plan exporter-9101: select: no node meets 'rack=Z99'"),
        (PLAN + "select: [colour=red]\n", "plan exporter-9101: select: 'colour=red' is no selector"),
        (PLAN.replace('  variables: {node_exporter_listen_address: "0.0.0.0:9101"}', "  settings: false"), "give what"),
    ],
)
def test_a_plan_is_checked_against_the_site_and_the_roles(site: Path, plan: Path, text: str, wanted: str) -> None:
    """Before anything is drained."""
    assert wanted in refused(site, plan, text)


def test_a_wrong_suite_of_the_site_is_named_with_its_own_line(site: Path, plan: Path) -> None:
    """The plan only names it."""
    (site / "suites").mkdir(exist_ok=True)
    (site / "suites/brief.yml").write_text("version: 1\nname: brief\nextends: nightly\nchecks: [nope]\n")
    error = refused(site, plan, PLAN + "suite: brief\n")
    assert f"{plan}:6 suite: {site}/suites/brief.yml:4 " in error


def test_a_dry_run_prints_the_waves_and_changes_nothing(site: Path, plan: Path) -> None:
    """Canaries, waves, the expected time, and what site.yml lacks."""
    done = maintain(site, "--dry-run", plan)
    assert done.return_value == 0, done.exception
    lines = done.stdout.splitlines()
    assert "n1: canary: node_exporter_listen_address = 0.0.0.0:9101" in lines
    assert "n4: wave 2: node_exporter_listen_address = 0.0.0.0:9101" in lines
    assert lines[0] == "expected time: unknown, no node has had these steps yet"
    assert "site.yml does not have node_exporter_listen_address" in done.stderr
    document = json.loads(maintain(site, plan, "--dry-run", "--json").stdout)
    assert document["dry_run"] is True
    assert document["expected"]["unknown"] == ["configure", "cable", "burnin", "admit"]
    assert maintain(site, "status").stdout.startswith("No plan has begun.")


def test_a_node_that_is_not_gold_has_no_turn(site: Path, plan: Path) -> None:
    """It is named with the reason."""
    CliRunner().invoke(cli, ["hold", "n3", "--reason", "loose fan", "--yes", "--site", str(site)])
    done = maintain(site, plan, "--dry-run")
    assert "left alone: n3: it is held by" in done.stdout
    assert "n4: wave 1: " in done.stdout


def test_a_plan_of_no_node_does_not_begin(site: Path, plan: Path) -> None:
    """Its name stays free, and the reason of the first node is in the message."""
    for name in NAMES:
        CliRunner().invoke(cli, ["hold", name, "--reason", "loose fan", "--yes", "--site", str(site)])
    error = str(maintain(site, plan, "--yes").exception)
    assert "no node of the plan can be changed; n1: it is held by" in error
    assert maintain(site, "status").stdout.startswith("No plan has begun.")


def test_nodes_without_a_place_are_no_wave_of_their_own(site: Path, plan: Path) -> None:
    """Waves by rack of a sheet without racks would be one wave of the whole pool."""
    sheet = site / "bmcs.csv"
    sheet.write_text(sheet.read_text().replace(",A01,12", ",,").replace(",A01,16", ",A02,16"))
    racks = refused(site, plan, PLAN.replace("by: nodes", "by: rack"))
    assert "plan exporter-9101: waves: n3: in no rack of the plan" in racks
    pods = refused(site, plan, by_pod("{p1: [A01]}"))
    assert "plan exporter-9101: waves: n3 and 1 more: in no pod of the plan" in pods


def test_a_plan_halts_where_its_canaries_fail_and_is_one_line(site: Path, plan: Path) -> None:
    """No host answers: both canaries are out of the pool, and no other node was touched."""
    done = maintain(site, plan, "--yes")
    assert done.return_value == 1
    status = maintain(site, "status").stdout
    assert "exporter-9101" in status
    assert "halted: 0 of 4 nodes done, 2 failed (the canary n1 failed: " in status
    (one,) = json.loads(maintain(site, "status", "exporter-9101", "--json").stdout)["plans"]
    assert [(node["name"], node["wave"], node["state"]) for node in one["nodes"]] == [
        ("n1", "canary", "failed"),
        ("n2", "canary", "failed"),
        ("n3", "wave 1", "waiting"),
        ("n4", "wave 2", "waiting"),
    ]
    assert {node["name"] for node in json.loads((site / "gold.json").read_text())["gold"]} == {"n3", "n4"}
    assert "maintenance: exporter-9101 is halted: 0 of 4 nodes done" in _nodes(site)
    assert "n1: canary: " in maintain(site, "resume", "exporter-9101", "--dry-run").stdout


def test_an_order_that_is_repeated_overrides_no_stop(site: Path, plan: Path) -> None:
    """A failed canary halted the plan: the same command again, or an older order to resume, begins with no other node."""
    maintain(site, plan, "--yes")
    error = maintain(site, plan, "--yes").exception
    assert "it is halted: the canary n1 failed: " in str(error)
    assert "clusterctl maintain resume exporter-9101 goes on with it" in str(error)
    context = open_site(site)
    seen = resuming(context, "exporter-9101")
    context.journal.append([moved("exporter-9101", PlanStage.PAUSED, "power work")])
    with pytest.raises(UsageError, match="it is paused: power work"):
        preview(context, seen)
    assert preview(context, resuming(context, "exporter-9101")).effects
    context.journal.close()


def _nodes(site: Path) -> str:
    return CliRunner().invoke(cli, ["nodes", "--site", str(site)], standalone_mode=False).stdout


def test_another_plan_of_the_same_name_is_refused(site: Path, plan: Path) -> None:
    """What is half done is never half of something else."""
    maintain(site, plan, "--yes")
    assert "began with another content" in refused(site, plan, PLAN + "stop_percent: 50\n")


def test_a_plan_that_is_stopped_gives_its_waiting_nodes_back_and_never_goes_on(site: Path, plan: Path) -> None:
    """Its run was killed while a node's jobs still ran; a second stop has nothing to do."""
    maintain(site, plan, "--yes")
    journal = open_site(site).journal
    journal.append([NewEvent(Stream.MAINTENANCE, "exporter-9101", MaintenanceTurn(node="n3", to=Turn.DRAINING))])
    journal.close()
    done = maintain(site, "stop", "exporter-9101", "--reason", "not now", "--yes")
    assert done.return_value == 0, done.exception
    assert "its nodes are given back" in done.stdout
    assert "stopped: 0 of 4 nodes done, 2 failed (not now)" in maintain(site, "status").stdout
    assert "it was stopped for good" in str(maintain(site, "resume", "exporter-9101").exception)
    assert "the plan is stopped" in str(maintain(site, "pause", "exporter-9101", "--yes").exception)


def test_a_roll_back_takes_the_nodes_that_were_touched(site: Path, plan: Path) -> None:
    """In the plan's own waves; BIOS settings have none."""
    maintain(site, plan, "--yes")
    done = maintain(site, "rollback", "exporter-9101", "--dry-run")
    assert [line for line in done.stdout.splitlines() if line.startswith("n")] == [
        "n1: canary: roll back to node_exporter_listen_address as its role has it",
        "n2: canary: roll back to node_exporter_listen_address as its role has it",
    ]
    assert maintain(site, "rollback", "exporter-9101", "--yes").return_value == 1
    assert "it is being rolled back, or was" in str(maintain(site, plan, "--dry-run").exception)


ROLE = """\
name: docker
reason: containers
change:
  roles: [docker]
"""


def test_a_role_has_no_roll_back_but_by_its_variables(site: Path, plan: Path) -> None:
    """What it made stays on the nodes: no node is "rolled back" by an order that does nothing."""
    plan.write_text(ROLE)
    maintain(site, plan, "--yes")
    assert "no role takes back what it made by itself: docker" in str(maintain(site, "rollback", "docker").exception)

    plan.write_text(ROLE.replace("docker\n", "images\n", 1) + "  variables: {docker_data_root: /data/docker}\n")
    maintain(site, plan, "--yes")
    done = maintain(site, "rollback", "images", "--dry-run")
    assert "roll back to docker_data_root as its role has it" in done.stdout
    assert "what these roles made stays on the nodes: docker" in done.stderr


def test_a_roll_back_with_values_of_its_own_applies_the_plans_roles(site: Path) -> None:
    """The role that takes itself back by a variable runs on the way back, too."""
    loaded = open_site(site).site
    change = Change(roles=("docker",), variables={"docker_data_root": "/data/docker"})
    way = MaintenancePlan(name="p", reason="r", change=change, back_variables={"docker_data_root": "/old"})
    (group,) = changed_site(loaded, way, ("n1",), back=True).settings.configure.groups
    assert (group.roles, group.variables) == (("docker",), {"docker_data_root": "/old"})
    without = replace(way, back_variables={})
    assert changed_site(loaded, without, ("n1",), back=True).settings.configure.groups == ()


def test_a_misspelt_command_is_not_taken_for_a_plan(site: Path) -> None:
    """It gets a suggestion."""
    error = maintain(site, "puase", "exporter-9101").exception
    assert "there is no command 'puase'" in str(error)
    assert "did you mean pause?" in str(error)


def test_a_detached_run_of_a_plan_is_repeatable(site: Path, plan: Path) -> None:
    """The plan is kept in the order itself: the file may be gone."""
    done = maintain(site, plan, "--yes", "--detach", "--json")
    assert done.return_value == 0, done.exception
    run = json.loads(done.stdout)["name"]
    plan.unlink()
    watched = CliRunner().invoke(cli, ["runs", "show", run, "--watch", "--site", str(site)], standalone_mode=False)
    assert watched.return_value == 1
    assert "halted: 0 of 4 nodes done" in maintain(site, "status").stdout


def test_a_plan_may_be_ordered_from_a_pool_of_workers(site: Path, plan: Path) -> None:
    """As it was previewed, and only by a worker that reaches its nodes."""
    done = maintain(site, plan, "--yes", "--queue", "pod3", "--detach", "--json")
    assert done.return_value == 0, done.exception
    record = runs.find(open_site(site), json.loads(done.stdout)["name"])
    assert (record.pool, bool(record.approved), bool(record.needs)) == ("pod3", True, True)
