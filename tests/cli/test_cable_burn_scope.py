"""`cable burn --scope`: what its values name."""

from __future__ import annotations

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl_cli.commands.cable_burn import ScopeNames, parsed_scope


def test_scopes_add_up():
    found = parsed_scope(["rail:0,1", "leaf:leaf-1, leaf-2", "node0[1-4]", "rail:3", "link:leaf-3:33"])
    assert found == ScopeNames((0, 1, 3), ("leaf-1", "leaf-2"), ("node0[1-4]",), ("leaf-3:33",))


def test_the_whole_fabric_is_no_scope():
    assert parsed_scope(["fabric"]) == parsed_scope([]) == ScopeNames()


@pytest.mark.parametrize(
    "scopes",
    [
        ["rail"],
        ["rail:"],
        ["leaf:"],
        ["leaf"],
        ["rail:x"],
        ["leaf:a,"],
        ["link:leaf-1"],
        ["link:leaf-1:"],
        ["fabric", "n1"],
    ],
)
def test_a_scope_that_names_nothing_is_refused(scopes):
    with pytest.raises(UsageError):
        parsed_scope(scopes)
