"""`playbooks/controller.yml` makes a controller of a bare lab host, with this checkout's wheel and real pip."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from clusterctl.edges.resources import resource
from clusterctl.ports import Deadline, PlayOutcome
from clusterctl_lab.machine import Machine
from tests.edges.ansible.rehearsal import Rehearsal, rehearsal
from tests.edges.ansible.support import DATA, playbooks
from tests.edges.ansible.wheelhouse import write_wheelhouse
from tests.packaging.test_wheel import build
from tests.paths import ROOT

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(3600)]
RUN_S = 1200.0
INSTALLS = "clusterctl_controller : Install the one that is wanted"


@dataclass(frozen=True, slots=True)
class Controller:
    """A lab host with the wheels in /srv/wheels."""

    lab: Rehearsal
    wheel: str

    def play(
        self, name: str, folder: Path, *, check: bool = False, more: Mapping[str, Any] = MappingProxyType({})
    ) -> PlayOutcome:
        """Run a playbook on it, with `more` variables."""
        variables = {
            "clusterctl_controller_package": f"/srv/wheels/{self.wheel}",
            "clusterctl_controller_pip_arguments": ["--no-index", "--find-links=/srv/wheels"],
            "clusterctl_controller_site": "/srv/site",
            "clusterctl_controller_alarm_command": ["/bin/sh", "-c", 'echo "$0" >>/tmp/alarms'],
        }
        with tempfile.TemporaryDirectory(prefix="pb", dir="/tmp") as work_dir:
            runner = playbooks(Path(work_dir), folder, check=check, silence_s=600.0)
            (run,) = runner.run(
                name, self.lab.hosts, {**self.lab.variables, **variables, **more}, Deadline.after(RUN_S)
            )
        return run.value


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    if os.geteuid() != 0:
        pytest.skip("lab hosts need root")
    if shutil.which("mmdebstrap") is None or shutil.which("apt-ftparchive") is None:
        pytest.skip("mmdebstrap or apt-utils is not installed")
    folder = tmp_path_factory.mktemp("controller")
    wheel = build(ROOT, folder)
    write_wheelhouse(folder / "wheels", wheel)
    files = {f"/srv/wheels/{path.name}": (path.read_bytes(), 0o644) for path in [wheel, *folder.glob("wheels/*")]}

    def also(_: Machine) -> dict[str, tuple[bytes, int]]:
        return files

    with (
        tempfile.TemporaryDirectory(prefix="co", dir="/var/tmp") as state,
        rehearsal(Path(state), lab="rolesc", network="10.222.0.0/16", count=1, also=also) as lab,
    ):
        yield Controller(lab, wheel.name)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the wheels are this Python's, and the host is Debian 12")
def test_a_bare_host_becomes_a_controller(controller: Controller) -> None:
    """Check mode fails nowhere; the first run writes a new site, which runs no nights; with a scheduler in the site file
    the nights follow its window; after that nothing is changed. Timer, backup, alarm and completion work.
    """
    shipped = resource("playbooks")
    ready = controller.play("controller_prepare.yml", DATA)
    assert ready.ok, ready.message
    checked = controller.play("controller.yml", shipped, check=True)
    assert checked.ok, checked.message
    first = controller.play("controller.yml", shipped)
    assert first.ok, first.message
    assert INSTALLS in first.changes
    assert not [task for task in first.changes if task.startswith("burnin_timer")]

    asked = controller.play("controller_site.yml", DATA)
    assert asked.ok, asked.message
    nights = controller.play("controller.yml", shipped)
    assert nights.ok, nights.message
    assert {task.partition(" : ")[0] for task in nights.changes} == {"clusterctl_controller", "burnin_timer"}
    assert INSTALLS not in nights.changes

    again = controller.play("controller.yml", shipped)
    assert (again.ok, again.changes) == (True, ()), again.message
    assert controller.play("controller.yml", shipped, check=True).changes == ()
    works = controller.play("controller_checks.yml", DATA)
    assert works.ok, works.message


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the wheels are this Python's, and the host is Debian 12")
def test_its_workers_work_until_they_are_no_longer_listed(controller: Controller) -> None:
    """A service for each pool, which shows itself in the journal; a second run changes nothing; then none is left."""
    shipped, pods = (
        resource("playbooks"),
        {"clusterctl_controller_workers": [{"pool": "pod3", "reach": ["10.30.0.0/16"]}]},
    )
    site = controller.play("controller_pod_site.yml", DATA)
    assert site.ok, site.message
    begun = controller.play("controller.yml", shipped, more=pods)
    assert begun.ok, begun.message
    alive = controller.play("controller_workers.yml", DATA)
    assert alive.ok, alive.message
    again = controller.play("controller.yml", shipped, more=pods)
    assert (again.ok, again.changes) == (True, ()), again.message
    ended = controller.play("controller.yml", shipped)
    assert ended.ok, ended.message
    gone = controller.play("controller_no_workers.yml", DATA)
    assert gone.ok, gone.message


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the wheels are this Python's, and the host is Debian 12")
def test_the_page_and_the_watch_of_the_fabric_are_services(controller: Controller) -> None:
    """Both run under systemd as the account; a second run changes nothing; then they are stopped."""
    shipped = resource("playbooks")
    wanted = {"clusterctl_controller_web": True, "clusterctl_controller_fabric_watch": True}
    begun = controller.play("controller.yml", shipped, more=wanted)
    assert begun.ok, begun.message
    served = controller.play("controller_services.yml", DATA)
    assert served.ok, served.message
    again = controller.play("controller.yml", shipped, more=wanted)
    assert (again.ok, again.changes) == (True, ()), again.message
    ended = controller.play("controller.yml", shipped)
    assert ended.ok, ended.message
    assert len([task for task in ended.changes if "page" in task or "fabric" in task]) == 2
