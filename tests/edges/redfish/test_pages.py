"""Collections that come in pages."""

from __future__ import annotations

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.redfish.tree import ROOT, RedfishTree

PAGE, NEXT = f"{ROOT}/Chassis", f"{ROOT}/Chassis?$skip=2"


def tree(first: list[str], second: list[str], count: int) -> RedfishTree:
    """The chassis of a BMC that lists them on two pages."""
    members = {page: [{"@odata.id": f"{PAGE}/{name}"} for name in names] for page, names in ((1, first), (2, second))}
    answers = {
        ROOT: {"Chassis": {"@odata.id": PAGE}},
        PAGE: {"Members": members[1], "Members@odata.count": count, "Members@odata.nextLink": NEXT},
        NEXT: {"Members": members[2], "Members@odata.count": count},
        **{f"{PAGE}/{name}": {"Id": name, "Name": name} for name in (*first, *second)},
    }
    return RedfishTree(answers)


def listed(pages: RedfishTree) -> list[str]:
    return [item.id for item in pages.members(pages.root, "Chassis")]


@pytest.mark.parametrize(("first", "second"), [(["a", "b"], ["c"]), (["a", "b", "c"], ["b", "c"])])
def test_every_member_once(first: list[str], second: list[str]) -> None:
    """Pages that follow each other, and pages that overlap as a recorded DGX's do, give each member once."""
    assert listed(tree(first, second, 3)) == ["a", "b", "c"]


def test_a_member_too_few_is_no_list() -> None:
    """A member that stands twice does not make up for one that is missing."""
    with pytest.raises(ParseError, match="counts 3 members but lists 2"):
        listed(tree(["a", "b"], ["b"], 3))
