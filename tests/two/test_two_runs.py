"""Two controllers on one site: every OS is written once; the second one does the rest and reports the owners."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys

import pytest

from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.node import Stage
from tests.events import new_event
from tests.two.conftest import LEASE_S, NAMES, ROOT, SHORT_LEASE_S, Scene

short_lease = pytest.mark.parametrize("lease_s", [SHORT_LEASE_S])
sqlite = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
ALL_INSTALLED = dict.fromkeys(NAMES, Stage.INSTALLED)
ONCE = dict.fromkeys(NAMES, 1)


@sqlite
def test_the_second_does_the_rest_and_reports_the_owners(scene: Scene) -> None:
    """Held nodes are named with command, operator, run, process, machine and since when; the free ones arrive; exit 1."""
    scene.world.hold("n1")
    first = scene.start("--limit", "n1", "n2")
    scene.until_installing("n1", "n2")
    second = scene.run("--json")
    assert second.process.returncode == 1
    (line,) = (line for line in second.err.splitlines() if line.startswith("left alone: "))
    holder = (
        rf"held by clusterctl bootstrap of \w+ \(run \S+, pid {first.pid} on {socket.gethostname()}, since .* UTC\)"
    )
    assert re.search(rf"^left alone: n1(, n2)?: {holder}$", line)
    document = json.loads(second.out)
    assert "n1" in document["left_alone"]
    assert {node["name"] for node in document["nodes"]} == set(NAMES)
    assert (scene.stages()["n3"], scene.stages()["n4"]) == (Stage.INSTALLED, Stage.INSTALLED)
    scene.world.let_go("n1")
    assert first.wait() == 0, first.err
    assert scene.stages() == ALL_INSTALLED
    assert scene.world.starts() == ONCE


@pytest.mark.parametrize("attempt", range(2))
@sqlite
def test_started_together_they_write_every_os_once(scene: Scene, attempt: int) -> None:
    """After both runs (and one more, for what was left alone) all nodes are installed, each once."""
    both = [scene.start(), scene.start()]
    codes = [controller.wait() for controller in both]
    assert set(codes) <= {0, 1}, [controller.err for controller in both]
    last = scene.run()
    assert last.process.returncode == 0, last.err
    assert scene.stages() == ALL_INSTALLED
    assert scene.world.starts() == ONCE


@short_lease
def test_a_controller_that_wakes_too_late_does_nothing(scene: Scene) -> None:
    """Stopped between the intent of an install and its request, it loses its nodes to another run; woken when that has
    finished, it writes no OS, names the new owner, and ends with exit code 1.
    """
    sleeper = scene.start("--stops-at", "n2")
    sleeper.until_stopped()
    assert [act.act for act in scene.journal().states()[1].open_acts] == ["install.start"]
    scene.until_expired()
    assert scene.run().process.returncode == 0
    assert scene.stages() == ALL_INSTALLED
    sleeper.wake()
    assert sleeper.wait() == 1, sleeper.err
    assert "left alone: n1, n2, n3, n4: held by" in sleeper.err
    assert scene.world.starts() == ONCE
    assert ("n2", sleeper.pid) not in scene.world.started_by()
    assert scene.stages() == ALL_INSTALLED


@sqlite
@short_lease
def test_a_controller_that_resumes_during_the_other_does_nothing_either(scene: Scene) -> None:
    """The other run still works on the nodes: the sleeper names it."""
    sleeper = scene.start("--stops-at", "n1")
    sleeper.until_stopped()
    scene.world.hold("n1")
    scene.until_expired()
    scene.set_lease(LEASE_S)
    other = scene.start()
    scene.until_installing("n1")
    sleeper.wake()
    assert sleeper.wait() == 1
    assert f"pid {other.pid} on" in sleeper.err
    scene.world.let_go("n1")
    assert other.wait() == 0
    assert scene.world.starts() == ONCE


@sqlite
@short_lease
def test_a_controller_with_unwanted_nodes_goes_on(scene: Scene) -> None:
    """Resumed after its claims expired, but no run took them: it asks, renews, and finishes its work."""
    sleeper = scene.start("--stops-at", "n1")
    sleeper.until_stopped()
    scene.until_expired()
    sleeper.wake()
    assert sleeper.wait() == 0, sleeper.err
    assert scene.world.starts() == ONCE
    assert scene.stages() == ALL_INSTALLED


@sqlite
def test_a_persons_command_on_a_held_node_is_refused(scene: Scene) -> None:
    """`release` of a node that a run works on names the owner and changes nothing."""
    stop = {"step": "install", "cause": "c", "remedy": "r", "verdict": "inconclusive"}
    scene.journal().append([new_event("node", "id-n1", Kind.NODE_HELD, stop)])
    scene.world.hold("n1")
    first = scene.start("--limit", "n1")
    scene.until_installing("n1")
    argv = ("release", "n1", "--reason", "repaired", "--yes", "--site", str(scene.site))
    refused = subprocess.run(
        (sys.executable, "-m", "clusterctl_cli.main", *argv), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert refused.returncode in (1, 2)
    assert "held by clusterctl bootstrap of" in refused.stderr
    assert f"pid {first.pid} on" in refused.stderr
    scene.world.let_go("n1")
    assert first.wait() == 0
    assert Kind.NODE_RELEASED not in [event.kind for event in scene.journal().history(Stream.NODE, "id-n1")]


@sqlite
def test_two_that_see_a_new_site_at_once_name_each_node_once(scene: Scene) -> None:
    """A site with nodes that no journal knows yet: both runs describe them all, neither fails for it, none is doubled."""
    sheet = "".join(f"m{number},192.0.2.{number + 100}\n" for number in range(1, 41))
    (scene.site / "bmcs.csv").write_text(f"name,bmc_address\n{sheet}")
    both = [scene.start("--limit", "m1"), scene.start("--limit", "m2")]
    for controller in both:
        assert controller.wait() == 1, controller.err
    names = [state.name for state in scene.journal().states()]
    assert sorted(names) == sorted({*NAMES, *(f"m{number}" for number in range(1, 41))})
