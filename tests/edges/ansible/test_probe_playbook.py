"""The playbook that asks the burn-in's probes by Ansible instead of clusterctl's own SSH."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from clusterctl.edges.resources import resource

ANSWER = {"version": 1, "host": "n1", "figures": [1.5, True, None], "text": "{{ not a template }}"}


def played(folder: Path, *variables: str) -> subprocess.CompletedProcess[str]:
    """Two hosts that are this machine."""
    playbook = resource("playbooks") / "probe.yml"
    argv = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "n1,n2,", "-c", "local", str(playbook)]
    for variable in (f"ansible_python_interpreter={sys.executable}", "ansible_become=false", *variables):
        argv += ["-e", variable]
    environment = {**os.environ, "ANSIBLE_HOME": str(folder / "home"), "ANSIBLE_LOCALHOST_WARNING": "false"}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=600, check=False)


def test_each_hosts_answer_is_kept_as_it_was(tmp_path: Path) -> None:
    """A file a host, for its owner alone; nothing is changed on the host."""
    script, recordings = tmp_path / "ask.py", tmp_path / "recordings"
    script.write_text(f"print({json.dumps(ANSWER)!r})\n")
    ran = played(tmp_path, f"probe_script={script}", f"probe_recordings={recordings}")
    assert ran.returncode == 0, ran.stdout
    files = sorted(recordings.iterdir())
    assert [file.name for file in files] == ["n1.json", "n2.json"]
    assert [json.loads(file.read_text()) for file in files] == [ANSWER, ANSWER]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """Before a host is asked."""
    ran = played(tmp_path)
    assert ran.returncode != 0
    assert "probe_recordings" in ran.stdout
