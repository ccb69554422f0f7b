"""What is sent to hosts: their roles and variables, and no secret that no role names."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

from clusterctl.edges.ansible.host_transport.payload import pack
from clusterctl.edges.ansible.host_transport.portable import examine


def sent(folder: Path) -> dict[str, bytes]:
    for role, text in (("used", "debug: {msg: '{{ used_token }}'}"), ("other", "debug: {msg: '{{ other_token }}'}")):
        (folder / "roles" / role / "tasks").mkdir(parents=True)
        (folder / "roles" / role / "tasks/main.yml").write_text(f"- ansible.builtin.{text}\n")
    (folder / "p.yml").write_text("- hosts: all\n  become: true\n  roles: [used]\n")
    secrets = {"used_token": "kq7Zt-41-Xw", "other_token": "Vb93-pl-0Ru"}
    portable = examine(folder / "p.yml", folder / "roles")
    packed = pack(folder / "p.yml", portable, folder / "roles", {"plain": 1}, secrets)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        assert {entry.mode for entry in archive.getmembers()} == {0o600}
        return {entry.name: archive.extractfile(entry).read() for entry in archive.getmembers()}  # type: ignore[union-attr]


def test_only_what_the_playbook_reaches_is_sent(tmp_path: Path) -> None:
    """A host has no use for roles that it does not play."""
    assert set(sent(tmp_path)) == {"env/extravars", "playbooks/p.yml", "roles/used/tasks/main.yml"}


def test_a_secret_goes_only_where_a_role_names_it(tmp_path: Path) -> None:
    """A node that is not to have a secret cannot lose it."""
    assert json.loads(sent(tmp_path)["env/extravars"]) == {"plain": 1, "used_token": "kq7Zt-41-Xw"}
