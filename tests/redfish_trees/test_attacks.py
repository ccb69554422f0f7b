"""A BMC does anything to one of its resources: a finding reports it, no other part is accused, nothing unread passes.

Each attack meets a few resources of two trees. `python -m benchmarks.bmc_attacks` tries all.
"""

from __future__ import annotations

import zlib
from functools import cache

import pytest

from tests.redfish_trees.attacks import HARMFUL, HARMLESS, Machine, violations
from tests.redfish_trees.load import CASES, load_truth

NAMES = [name for name in CASES if "error" not in load_truth(name)["identity"]]


@cache
def machine(name: str) -> Machine:
    return Machine(name)


def turn(title: str) -> list[str]:
    """Return the trees that this attack is tried on: one that is read quickly, and one after the other."""
    return ["dmtf-contoso-3500", NAMES[zlib.crc32(title.encode()) % len(NAMES)]]


@pytest.mark.parametrize("title", [*HARMLESS, *HARMFUL])
def test_attack(title: str) -> None:
    """On the root, and on three resources that the title picks."""
    attack = {**HARMLESS, **HARMFUL}[title]
    found: list[str] = []
    for name in turn(title):
        here = machine(name)
        wires = {path: wire for path in here.paths() if (wire := attack(here.tree, path)) is not None}
        paths = list(wires)
        assert paths
        for path in {paths[0], *(paths[(zlib.crc32(title.encode()) + step * 7) % len(paths)] for step in range(3))}:
            after = here.discover({**here.wire, **wires[path]})
            found += [f"{name} {path}: {one}" for one in violations(here, after, harmless=title in HARMLESS)]
    assert not found
