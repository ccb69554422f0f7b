"""Ansible: found where runs look for it, and able to start. Every module that the roles use ships with ansible-core."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges.ansible.workspace import tool_path
from clusterctl.fleet.diagnosis import Diagnosis, broken, ok

NAME = "ansible"
SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Seen:
    """Where `ansible-playbook` is (empty: nowhere), and its exit status and output when asked for its version."""

    program: str
    status: int = 0
    output: str = ""


def check() -> Diagnosis:
    return judge(look(tool_path()))


def look(path: str) -> Seen:
    program = shutil.which("ansible-playbook", path=path)
    if program is None:
        return Seen("")
    try:
        with tempfile.TemporaryDirectory(prefix="clusterctl-doctor-") as home:
            (Path(home) / "ansible.cfg").touch()  # nobody else's settings decide
            ran = subprocess.run(
                [program, "--version"],
                capture_output=True,
                text=True,
                check=False,
                timeout=SECONDS,
                env=_environment(path, home),
                stdin=subprocess.DEVNULL,
                cwd=home,
            )
    except subprocess.TimeoutExpired:
        return Seen(program, 124, f"no answer within {SECONDS:.0f} s")
    except OSError as error:
        return Seen(program, 126, error.strerror or "cannot be run")
    return Seen(program, ran.returncode, ran.stdout or ran.stderr)


def _environment(path: str, home: str) -> dict[str, str]:
    settings = {"ANSIBLE_CONFIG": f"{home}/ansible.cfg", "ANSIBLE_HOME": f"{home}/home"}
    return {"PATH": path, "LANG": "C.UTF-8", "HOME": home, **settings}


def judge(seen: Seen) -> Diagnosis:
    remedy = "install clusterctl again with its dependencies: they include ansible-core and ansible-runner"
    if not seen.program:
        return broken(NAME, "ansible-playbook is not installed beside clusterctl", remedy)
    first = next(iter(seen.output.strip().splitlines()), "no output")
    if seen.status != 0:
        return broken(NAME, f"{seen.program} does not start: {first}", remedy)
    return ok(NAME, first)
