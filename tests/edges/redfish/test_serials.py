"""What firmware writes in place of a serial identifies no machine, in discover as in the sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.redfish.identity import read_identity
from clusterctl.formats.redfish.inventory import read_inventory
from tests.edges.redfish.trees import ask, small

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "data" / "serials.yml").read_text())


@pytest.mark.parametrize("case", CASES, ids=[f"{case['text']}" for case in CASES])
def test_each_serial(case: dict[str, Any]) -> None:
    """A real one is read by both as it stands; any other leaves the machine unidentified, with a reason."""
    text = str(case["text"])
    tree = small()
    tree["/redfish/v1/Systems/1"]["SerialNumber"] = text
    swept = read_identity(tree, "192.0.2.1").serial
    if case["real"]:
        assert ask(read_inventory, tree).inventory.serial == swept == text.strip()
        return
    with pytest.raises(ParseError) as refused:
        ask(read_inventory, tree)
    assert refused.value.remedy
    assert swept is None
