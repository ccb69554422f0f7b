"""Which roles and variables a node gets, what is wrong with a choice, and in which order roles are applied."""

from __future__ import annotations

from typing import Any

import pytest

from clusterctl.fleet.roles.problems import unknown_names, unknown_role, wrong_choice, wrong_variables
from clusterctl.fleet.roles.selection import (
    Choice,
    Group,
    GroupMember,
    RequestedRoles,
    play_variables,
    recommended_section,
)
from clusterctl.fleet.roles.specification import Role, Variable, misplaced, mistake

ROLES = {
    role.name: role
    for role in (
        Role("base", {"base_packages": Variable("list", elements="str")}, recommended=True),
        Role("repo", {"repo_url": Variable(required=True, description="where it lies")}, for_nodes=False),
        Role(
            "driver", {"driver_version": Variable(required=True)}, after=("base",), brings=("repo",), recommended=True
        ),
        Role("zfs_pool", {"zfs_pool_level": Variable("int")}, excludes=("raid0",)),
        Role("raid0", excludes=("zfs_pool",)),
        Role("docker", after=("zfs_pool", "raid0")),
        Role("toolkit", after=("docker",), needs=("driver",)),
    )
}
N1, N2 = GroupMember("node001", "A01", "xe"), GroupMember("node002", "A02", "xe")


def texts(found: Any) -> list[str]:
    return [problem.text for problem in found]


def test_a_group_adds_takes_away_and_overrides() -> None:
    """By name, rack and SKU, all that are given; of two groups the later one holds; who is in none gets the site's."""
    wanted = RequestedRoles(
        ("base", "zfs_pool"),
        {"zfs_pool_level": 1},
        (
            Group(nodes=("node00[12]",), roles=("docker",), variables={"zfs_pool_level": 2}),
            Group(
                racks=("A02",), skus=("xe",), roles=("raid0",), without=("zfs_pool",), variables={"zfs_pool_level": 3}
            ),
            Group(racks=("A02",), skus=("other",), without=("base",)),
        ),
    )
    assert wanted.choose(N1) == Choice(("base", "zfs_pool", "docker"), {"zfs_pool_level": 2}, (0,))
    assert wanted.choose(N2) == Choice(("base", "docker", "raid0"), {"zfs_pool_level": 3}, (0, 1))
    assert wanted.choose(GroupMember("node003")) == Choice(("base", "zfs_pool"), {"zfs_pool_level": 1})


def test_a_value_that_differs_is_never_reported_for_all() -> None:
    """Ansible's extra variables would go before a node's own: each node gets its value, the site's where it has none."""
    wanted = RequestedRoles(
        ("base",), {"a": 1, "b": 1}, (Group(nodes=("node002",), roles=("docker",), variables={"b": 2}),)
    )
    reported = play_variables(wanted, [N1, N2])
    assert reported == {
        "a": 1,
        "configure_roles": ["base"],
        "configure_roles_for": {"node002": ["base", "docker"]},
        "configure_variables_for": {"node001": {"b": 1}, "node002": {"b": 2}},
    }


def test_a_role_that_cannot_be_chosen_is_reported_with_its_neighbours() -> None:
    """A misspelt one, one that is not for nodes; a good one is nothing."""
    assert unknown_role("docker", ROLES) is None
    misspelt, other = unknown_role("dokcer", ROLES), unknown_role("repo", ROLES)
    assert misspelt is not None
    assert (misspelt.text, misspelt.remedy) == (
        "there is no role 'dokcer'",
        "did you mean docker?",
    )
    assert other is not None
    assert other.text == "repo is no role for nodes"


def test_variables_that_no_role_knows() -> None:
    """A typo of a role's variable is reported; the site's own names, which its values refer to, and Ansible's are not."""
    message = {"driver_verison": "1", "base_x": 1, "drver_version": "1", "my_mirror": "x", "ansible_port": 1}
    assert texts(wrong_variables(message, ROLES)) == [
        "no role knows a variable driver_verison",
        "no role knows a variable base_x",
        "no role knows a variable drver_version",
    ]
    (problem,) = unknown_names({"driver_token": object()}, ROLES)
    assert problem.about == "driver_token"
    (reserved,) = wrong_variables({"configure_reboot": False}, ROLES)
    assert "configure.reboots" in reserved.remedy


def test_what_roles_lack_of_each_other_and_of_variables() -> None:
    """By role and name, what a role brings with it too; a secret counts as given; each pair is reported once."""
    choice = Choice(("base", "driver", "zfs_pool", "raid0"), {})
    assert texts(wrong_choice(choice, frozenset({"driver_version"}), ROLES)) == [
        "raid0 and zfs_pool exclude each other",
        "role driver requires repo_url, which is not set",
    ]
    assert texts(wrong_choice(Choice(("toolkit",), {}), frozenset(), ROLES)) == ["toolkit needs the role driver"]


def test_an_empty_value_is_reported_once() -> None:
    """At its own line, not as missing too."""
    variables = {"repo_url": None, "driver_version": "1"}
    assert texts(wrong_variables(variables, ROLES)) == ["repo_url is empty"]
    assert texts(wrong_choice(Choice(("driver",), variables), frozenset(), ROLES)) == []


@pytest.mark.parametrize(
    ("value", "variable", "words"),
    [
        ("570.10.1", Variable("str"), ""),
        (570.10, Variable("str"), "write it in quotes"),
        (True, Variable("str"), "write it in quotes"),
        (9100, Variable("str"), ""),
        ("false", Variable("bool"), "true or false"),
        (True, Variable("int"), "a whole number"),
        ("{{ other }}", Variable("list"), ""),
        ("nvidia-open", Variable("list", elements="str"), "must be a list"),
        (["a", 1.5], Variable("list", elements="str"), "entry 2"),
        ("x", Variable("str", choices=("a", "b")), "one of a, b"),
        (
            {"item": "x"},
            Variable("dict", inner={"item": Variable(), "type": Variable(required=True)}),
            "lacks its field",
        ),
        ([{"itm": "x"}], Variable("list", elements="dict", inner={"item": Variable()}), "a field itm"),
        (object(), Variable("raw"), ""),
    ],
)
def test_values_follow_the_specification(value: object, variable: Variable, words: str) -> None:
    """Stricter than Ansible, which gives the role the value as it was written."""
    found = mistake(value, variable)
    assert (words in found) if words else (found == "")


def test_an_order_is_whole_and_right() -> None:
    """Every role for nodes once, none before what it builds on."""
    right = ["base", "driver", "zfs_pool", "raid0", "docker", "toolkit"]
    assert misplaced(right, ROLES) == ()
    assert misplaced(["docker", *right], ROLES) == (
        "docker stands there twice",
        "docker comes before zfs_pool",
        "docker comes before raid0",
    )
    assert misplaced([*right[:-1], "repo"], ROLES) == ("repo is no role for nodes", "toolkit is missing")


def test_a_new_site_lists_what_is_to_be_filled_in() -> None:
    """The recommended roles in their order, and each required variable once, those of what a role brings too."""
    section = recommended_section(["base", "driver", "docker"], ROLES, frozenset({"driver_version"}))
    assert section.splitlines()[2:] == [
        "    - base",
        "    - driver",
        "  variables:",
        "    # repo: where it lies",
        "    repo_url:  # fill in",
    ]
