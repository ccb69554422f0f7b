"""A play that is broken off lets a package manager finish, and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.paths import ROOT

PROGRAM = """\
import json, os, subprocess, sys, time
from clusterctl.edges.ansible.host_transport.programs.package_managers import end_without_package_managers
from clusterctl.edges.ansible.supervisor import adopt_orphans, descendants

adopt_orphans()
waiter = subprocess.Popen([sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])", *sys.argv[1:]])
other = subprocess.Popen(["sleep", "600"])
while not any(open(f"/proc/{pid}/comm").read() == "dpkg\\n" for pid in descendants(os.getpid())):
    time.sleep(0.05)
began = time.monotonic()
end_without_package_managers(float(60))
print(json.dumps({"waiter": waiter.wait(), "other": other.wait(), "seconds": time.monotonic() - began}))
"""


def test_a_package_manager_is_waited_for(tmp_path: Path) -> None:
    """The package manager and its waiting process end by themselves; the endless process next to them is killed at once."""
    shutil.copy(shutil.which("sleep") or "/bin/sleep", tmp_path / "dpkg")
    argv = [sys.executable, "-c", PROGRAM, str(tmp_path / "dpkg"), "3"]
    root = ROOT
    output = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True, timeout=600, cwd=root).stdout)

    assert output["waiter"] == 0
    assert output["other"] == -9
    assert output["seconds"] < 55
