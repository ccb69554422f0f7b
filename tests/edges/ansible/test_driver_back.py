"""Which packages the role nvidia_driver takes back to an older version: the parts of a newer driver, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from clusterctl.edges.resources import resource

ROLE = resource("roles") / "nvidia_driver"
WANTED = "570.148.08"
INSTALLED = [
    "installed nvidia-open 575.57.08-1",
    "installed nvidia-driver-cuda 575.57.08-1",
    "installed nvidia-kernel-open-dkms 575.57.08-1",
    "installed libnvidia-ml1 575.57.08-0ubuntu1",
    "installed nvidia-persistenced 570.148.08-1",
    "installed nvidia-container-toolkit 1.17.8-1",
    "config-files nvidia-kernel-dkms 575.57.08-1",
    "installed nvidia-imex-575 575.57.08-1",
]
"""As `dpkg-query` prints it; names of NVIDIA's repository."""
KNOWN = [
    "nvidia-open | 575.57.08-1 | http://mirror.example ./ Packages",
    "nvidia-open | 570.148.08-1 | http://mirror.example ./ Packages",
    "nvidia-driver-cuda | 570.148.08-1 | http://mirror.example ./ Packages",
    " nvidia-kernel-open-dkms | 570.148.08-1 | http://mirror.example ./ Packages",
    "libnvidia-ml1 | 570.148.08-0ubuntu1 | http://mirror.example ./ Packages",
    "nvidia-imex-575 | 575.57.08-1 | http://mirror.example ./ Packages",
]
"""As `apt-cache madison` prints it."""


def computed(folder: Path, installed: list[str], known: list[str] | None) -> dict[str, Any]:
    """What the role's own variables make of both answers; the second is None where the role did not ask."""
    facts: dict[str, Any] = {
        "ansible_python_interpreter": sys.executable,
        "nvidia_driver_version": WANTED,
        "nvidia_driver_packages": ["nvidia-open"],
        "__nvidia_driver_there": {"stdout_lines": installed},
        "__nvidia_driver_known": {"skipped": True} if known is None else {"stdout_lines": known},
    }
    out = folder / "out.json"
    content = "{{ {'newer': __nvidia_driver_newer, 'pinned': __nvidia_driver_pinned} | to_json }}"
    task = {"ansible.builtin.copy": {"content": content, "dest": str(out), "mode": "0600"}}
    files = [str(ROLE / "vars/main.yml")]
    play = {"hosts": "localhost", "gather_facts": False, "vars": facts, "vars_files": files, "tasks": [task]}
    (folder / "play.yml").write_text(yaml.safe_dump([play]))
    argv = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", "-c", "local", "play.yml"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(out.read_text()))


def test_the_parts_of_a_newer_driver_go_back_with_it(tmp_path: Path) -> None:
    """What has the wanted version already, another product, a removed package, and one without the version stay."""
    found = computed(tmp_path, INSTALLED, KNOWN)
    assert found["newer"] == [
        "nvidia-open", "nvidia-driver-cuda", "nvidia-kernel-open-dkms", "libnvidia-ml1", "nvidia-imex-575",
    ]  # fmt: skip
    back = ("nvidia-open", "nvidia-driver-cuda", "nvidia-kernel-open-dkms", "libnvidia-ml1")
    assert found["pinned"] == [f"{name}={WANTED}-*" for name in back]


def test_a_host_without_a_newer_driver_gets_the_named_packages_alone(tmp_path: Path) -> None:
    """Nothing is asked of the repository: a first install, or an update."""
    older = [line.replace("575.57.08", "565.57.01") for line in INSTALLED]
    for installed in ([], older):
        assert computed(tmp_path, installed, None) == {"newer": [], "pinned": [f"nvidia-open={WANTED}-*"]}
