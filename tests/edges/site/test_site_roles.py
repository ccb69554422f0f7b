"""Mistakes of a site file about roles: reported at file, line and field, before anything is touched."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clusterctl.edges.site import load_site
from clusterctl.edges.site.roles import check_roles, role_order, shipped_roles, write_site
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.roles.specification import misplaced
from tests.edges.site.ready import filled_in, write_ready_site


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_ready_site(tmp_path / "site")


def configure(site: Path, section: str) -> None:
    """Put `section` in place of the site's `configure`."""
    file = site / "site.yml"
    text = re.sub(r"(?ms)^configure:\n.*?(?=^#|^\S)", f"configure:\n{section}\n", file.read_text())
    file.write_text(text)


def refused(site: Path, section: str) -> str:
    configure(site, section)
    with pytest.raises(UsageError) as caught:
        check_roles(load_site(site))
    return str(caught.value)


def test_what_init_writes_is_whole_once_filled_in(tmp_path: Path) -> None:
    """It names every recommended role; each variable that is still to be filled in is reported at its line."""
    folder = tmp_path / "new"
    write_site(folder)
    with pytest.raises(UsageError, match=r"site\.yml:\d+ configure\.variables\.nvidia_driver_version: .* is empty"):
        check_roles(load_site(folder))
    file = folder / "site.yml"
    file.write_text(filled_in(file.read_text()))
    loaded = load_site(folder)
    check_roles(loaded)
    assert set(loaded.settings.configure.roles) == {r.name for r in shipped_roles().values() if r.recommended}


def test_no_description_shows_ansible_markup(tmp_path: Path) -> None:
    """A site file is no page of Ansible: `C(https://)` is `https://` in its comments, and in errors of roles."""
    folder = tmp_path / "new"
    write_site(folder)
    descriptions = [variable.description for role in shipped_roles().values() for variable in role.variables.values()]
    texts = [*descriptions, (folder / "site.yml").read_text()]
    assert len(descriptions) > 100
    assert [text for text in texts if re.search(r"\b[A-Z]\([^)]", text)] == []
    assert any("as pip reads it; https:// or file:///." in text for text in texts)


def test_every_role_for_nodes_has_its_place_in_the_playbook() -> None:
    """`configure.yml` lists each once, none before what roles/placement.yml has it come after."""
    assert misplaced(role_order(), shipped_roles()) == ()


def test_an_unknown_role_names_its_line_and_neighbours(site: Path) -> None:
    """Exit code 2's error: file, line, field, and what may have been meant."""
    message = refused(site, "  roles: [base,\n    node_exprter]")
    assert re.search(r"site\.yml:\d+ configure\.roles\.1: there is no role 'node_exprter'", message)
    assert "did you mean node_exporter" in message


def test_every_problem_is_reported_at_once(site: Path) -> None:
    """What a role requires, a name that no role knows, a value of the wrong type, a pattern that fits no node."""
    message = refused(
        site,
        "  roles: [base, nvidia_driver]\n"
        "  variables: {base_swapoff: true, base_packages: curl}\n"
        "  groups:\n    - {nodes: [rack9-*], roles: [ssh_access]}",
    )
    for words in (
        "no role knows a variable base_swapoff",
        "base_packages must be a list",
        "role nvidia_driver requires nvidia_driver_version, which is not set",
        "none of the site's nodes is 'rack9-*'",
    ):
        assert words in message


def test_a_variable_of_some_nodes_is_asked_for_on_the_others(site: Path) -> None:
    """A group that gives a role to a node needs its variables there, and nowhere else."""
    values = "nvidia_driver_version: '1.2', nvidia_repository_url: u, nvidia_repository_key: k"
    message = refused(site, "  roles: [base]\n  groups:\n    - {nodes: [node001], roles: [nvidia_driver]}")
    assert "nvidia_driver_version, which is not set (on node001)" in message
    configure(
        site, f"  roles: [base]\n  groups:\n    - {{nodes: [node001], roles: [nvidia_driver], variables: {{{values}}}}}"
    )
    check_roles(load_site(site))
