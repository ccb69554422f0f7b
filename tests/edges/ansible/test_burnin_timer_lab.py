"""The units of burnin_timer on a lab host's systemd: what counts as finished, and when an operator is notified."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from clusterctl.ports import Deadline
from tests.edges.ansible.rehearsal import rehearsal
from tests.edges.ansible.support import playbooks

pytestmark = [pytest.mark.lab, pytest.mark.timeout(3600)]
RUN_S = 2400.0
COMMANDS = {
    "burnin_timer_command": ["/bin/sh", "-c", "exit $(cat /run/exit-code)"],
    "burnin_timer_alarm_command": ["/bin/sh", "-c", 'echo "$0" >>/run/alarms'],
}


def test_a_finished_run_resets_the_switch_and_anything_else_raises_the_alarm() -> None:
    """Exit codes 1 and 3 raise the alarm; 1 counts as finished; the switch raises it when nothing has finished for long."""
    if os.geteuid() != 0:
        pytest.skip("lab hosts need root")
    if shutil.which("mmdebstrap") is None or shutil.which("apt-ftparchive") is None:
        pytest.skip("mmdebstrap or apt-utils is not installed")
    name = f"{os.environ.get('CLUSTERCTL_ROLES_LAB', 'roles')}t"
    network = os.environ.get("CLUSTERCTL_TIMER_NETWORK", "10.119.0.0/16")
    with (
        tempfile.TemporaryDirectory(prefix="bt", dir="/var/tmp") as state,
        tempfile.TemporaryDirectory(prefix="pb", dir="/tmp") as work_dir,
        rehearsal(Path(state), lab=name, network=network, count=1) as lab,
    ):
        runner = playbooks(Path(work_dir))
        (run,) = runner.run("burnin_timer.yml", lab.hosts, {**lab.variables, **COMMANDS}, Deadline.after(RUN_S))

        assert run.value.ok, run.value
