"""What keeps a playbook from being played by the hosts themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterctl.edges.ansible.host_transport.portable import Portable, chosen_roles, examine
from clusterctl.edges.resources import resource
from clusterctl.edges.site.roles import role_order
from tests.edges.ansible.role_cases import ROLES


def obstacles(folder: Path, task: str, *, template: str = "") -> str:
    """Of a playbook whose one role has one task."""
    for name in ("tasks", "templates"):
        (folder / "roles/r" / name).mkdir(parents=True)
    (folder / "roles/r/tasks/main.yml").write_text(f"- name: Do\n  {task}\n")
    (folder / "roles/r/templates/x.j2").write_text(template)
    (folder / "p.yml").write_text("- hosts: all\n  become: true\n  roles: [r]\n")
    return "; ".join(examine(folder / "p.yml", folder / "roles").obstacles)


@pytest.mark.parametrize("role", ROLES)
def test_every_role_can_be_played_by_its_host(tmp_path: Path, role: str) -> None:
    """A role that cannot takes every node back to SSH, where the controller works for each task of each host."""
    playbook = tmp_path / "p.yml"
    playbook.write_text(f"- hosts: all\n  become: true\n  roles: [{role}]\n")

    assert examine(playbook, resource("roles")).obstacles == ()


@pytest.mark.parametrize(
    ("task", "word"),
    [
        ("delegate_to: other", "delegate_to"),
        ("run_once: true", "run_once"),
        ("throttle: 2", "throttle"),
        ("ansible.builtin.reboot:", "reboot"),
        ("reboot:", "reboot"),
        ("ansible.builtin.fetch: {src: /a, dest: b}", "fetch"),
        ("ansible.builtin.meta: end_play", "end_play"),
        ("ansible.builtin.copy: {src: /etc/site.key, dest: /x}", "/etc/site.key"),
        ("ansible.builtin.copy: {src: '{{ site_key }}', dest: /x}", "site_key"),
        ("ansible.builtin.include_tasks: ../../x.yml", "another folder"),
        ("ansible.builtin.include_role: {name: '{{ x }}'}", "not known"),
        ("community.general.ini_file: {path: /x}", "collection"),
        ("with_fileglob: [/etc/*]", "with_fileglob"),
        ("when: hostvars['other'].x", "hostvars"),
        ("ansible.builtin.assert: {that: groups.all | length > 1}", "groups"),
        ("ansible.builtin.command: {argv: [echo, \"{{ lookup('env', 'HOME') }}\"]}", "lookup env"),
        ("ansible.builtin.command: {argv: [echo, \"{{ lookup('file', '/etc/x') }}\"]}", "lookup file"),
        ('ansible.builtin.command: {argv: [echo, "{{ ansible_user }}"]}', "ansible_user"),
        ("block: [{ansible.builtin.command: x, delegate_to: other}]", "delegate_to"),
        ("vars: !vault x", "cannot be read"),
        ("become: false", "become"),
    ],
)
def test_what_would_be_another_play_is_an_obstacle(tmp_path: Path, task: str, word: str) -> None:
    """Named with the file that has it, so that its author finds it."""
    message = obstacles(tmp_path, task)

    assert "r/tasks/main.yml" in message
    assert word in message


@pytest.mark.parametrize(
    "task",
    [
        "ansible.builtin.copy: {src: x, dest: /x}",
        "ansible.builtin.copy: {src: /etc/a, dest: /x, remote_src: true}",
        "ansible.builtin.template: {src: '{{ item }}.j2', dest: /x}",
        "ansible.builtin.wait_for: {port: 22, connect_timeout: 1}",
        "ansible.builtin.include_tasks: 'prove_{{ how }}.yml'",
        "ansible.builtin.command: {argv: [echo, \"{{ lookup('ansible.builtin.template', 'x.j2') }}\"]}",
        "ansible.builtin.command: {argv: [echo, \"{{ lookup('file', 'x.py') }}\"]}",
        "ansible.builtin.command: {argv: [usermod, --groups, docker, ops]}",
    ],
)
def test_what_a_host_can_do_alone_is_none(tmp_path: Path, task: str) -> None:
    """The role's own files, its loops, words that only look alike."""
    assert obstacles(tmp_path, task, template="groups:\n  - name: {{ inventory_hostname }}\n") == ""


def test_templates_are_read_too(tmp_path: Path) -> None:
    """A template that names other hosts would be rendered without them."""
    assert "hostvars" in obstacles(tmp_path, "ansible.builtin.ping:", template="{% for h in hostvars %}{% endfor %}")


def test_a_play_must_be_roots(tmp_path: Path) -> None:
    """Without become, tasks are the login's over SSH, and root's on the host itself."""
    (tmp_path / "p.yml").write_text("- hosts: all\n  tasks: [{ansible.builtin.ping: }]\n")

    assert "become" in examine(tmp_path / "p.yml", tmp_path).obstacles[0]


def test_roles_are_followed(tmp_path: Path) -> None:
    """Through dependencies and includes, and only those are sent."""
    for name, file, text in (
        ("a", "meta/main.yml", "dependencies: [{role: b}]\n"),
        ("b", "tasks/main.yml", "- ansible.builtin.include_role: {name: c}\n"),
        ("c", "tasks/main.yml", "- ansible.builtin.ping:\n  run_once: true\n"),
        ("d", "tasks/main.yml", "- ansible.builtin.reboot:\n"),
    ):
        (tmp_path / "roles" / name / file).parent.mkdir(parents=True)
        (tmp_path / "roles" / name / file).write_text(text)
    (tmp_path / "p.yml").write_text("- hosts: all\n  become: true\n  roles: [a]\n")
    found = examine(tmp_path / "p.yml", tmp_path / "roles")

    assert found.roles == ("a", "b", "c")
    assert found.obstacles == ("c/tasks/main.yml: run_once acts on another host",)


LOOP = "ansible.builtin.include_role: {name: '{{ one }}'}\n      loop: \"%s\"\n      loop_control: {loop_var: one}\n"


def listed(folder: Path, loop: str, chosen: tuple[str, ...] | None = None) -> Portable:
    """A playbook that goes through its list of two roles."""
    for name in ("a", "b", "c"):
        (folder / f"roles/{name}/tasks").mkdir(parents=True)
        (folder / f"roles/{name}/tasks/main.yml").write_text("[]\n")
    head = "- hosts: all\n  become: true\n  vars:\n    order: [a, b]\n    more: ['{{ x }}']\n  tasks:\n    - name: Do\n      "
    (folder / "p.yml").write_text(head + LOOP % loop)
    return examine(folder / "p.yml", folder / "roles", chosen)


def test_roles_out_of_a_list_are_known(tmp_path: Path) -> None:
    """All of the list, or those that any node is to get; nothing else goes along."""
    found = listed(tmp_path, "{{ order | select('in', wanted) }}", ("b", "c"))
    assert (found.roles, found.obstacles) == (("b",), ())
    assert examine(tmp_path / "p.yml", tmp_path / "roles").roles == ("a", "b")


@pytest.mark.parametrize(
    "loop", ["{{ wanted }}", "{{ more | list }}", "{{ order | union(wanted) }}", "{{ order + wanted }}"]
)
def test_roles_out_of_thin_air_are_not(tmp_path: Path, loop: str) -> None:
    assert "not known beforehand" in str(listed(tmp_path, loop).obstacles)


def test_configure_is_played_by_the_hosts() -> None:
    """With all roles that there are for nodes: none of them takes the others back to SSH."""
    found = examine(resource("playbooks") / "configure.yml", resource("roles"))
    assert found.obstacles == ()
    assert {*role_order()} <= {*found.roles}


def test_the_hosts_of_a_secret_are_read_from_the_variables() -> None:
    assert chosen_roles({"configure_roles": ["base"], "configure_roles_for": {"n1": ["docker"]}}) == {"base", "docker"}
    assert chosen_roles({"x": 1}) is None
