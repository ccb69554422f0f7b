"""Faults: each breaks what its text promises, only that, and reports when it cannot."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.faults import FAULTS, find, inject, machine_named
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine

LAYOUT = Layout(IPv4Network("10.88.0.0/16"))


def machines(count: int = 3) -> dict[str, Machine]:
    return {m.name: m for m in (build(index, LAYOUT, "secret") for index in range(1, count + 1))}


def test_missing_gpu_takes_out_the_one_named() -> None:
    """Only that GPU is gone, the others keep their slots and serials."""
    fleet = machines()
    broken = inject(fleet, "missing-gpu", "node002:gpu5")
    healthy = fleet["node002"]
    assert broken.gpus == tuple(gpu for gpu in healthy.gpus if gpu.index != 5)
    assert broken.faults == ("missing-gpu:gpu5",)
    assert replace(broken, gpus=healthy.gpus, faults=()) == healthy


def test_missing_gpu_takes_the_last_one_by_default_and_can_be_repeated() -> None:
    """Each injection takes one more, until none is left; then it is refused."""
    fleet = machines(1)
    for left in range(7, -1, -1):
        fleet["node001"] = inject(fleet, "missing-gpu", "node001")
        assert [gpu.index for gpu in fleet["node001"].gpus] == list(range(left))
    with pytest.raises(UsageError, match="no GPU left"):
        inject(fleet, "missing-gpu", "node001")


def test_swapped_cable_exchanges_two_far_ends() -> None:
    """Both links stay plugged, each into the other's port; all else is as it was."""
    fleet = machines()
    healthy, broken = fleet["node003"], inject(fleet, "swapped-cable", "node003")
    assert [hca.cable for hca in broken.hcas[:2]] == [healthy.hcas[1].cable, healthy.hcas[0].cable]
    assert broken.hcas[2:] == healthy.hcas[2:]
    assert [replace(hca, cable=None) for hca in broken.hcas] == [replace(hca, cable=None) for hca in healthy.hcas]


def test_swapping_twice_gives_the_healthy_cabling_back() -> None:
    """The fault is its own inverse, whatever order the HCAs are named in."""
    fleet = machines()
    healthy = fleet["node001"]
    fleet["node001"] = inject(fleet, "swapped-cable", "node001:mlx5_2,mlx5_7")
    assert inject(fleet, "swapped-cable", "node001:mlx5_7,mlx5_2").hcas == healthy.hcas


def test_never_boots_leaves_every_part_in_place() -> None:
    """Only POST is broken."""
    fleet = machines()
    broken = inject(fleet, "never-boots", "node001")
    assert not broken.boots
    assert replace(broken, boots=True, faults=()) == fleet["node001"]


def test_without_a_target_the_first_healthy_machine_is_taken() -> None:
    """So that `lab inject FAULT` three times breaks three machines."""
    fleet = machines(2)
    for name in ("node001", "node002"):
        broken = inject(fleet, "never-boots", "")
        assert broken.name == name
        fleet[name] = broken
    with pytest.raises(UsageError, match="every machine"):
        inject(fleet, "never-boots", "")


@pytest.mark.parametrize(
    ("fault", "target", "words"),
    [
        ("melted-gpu", "node001", "there is no fault 'melted-gpu'"),
        ("missing-gpu", "node009", "there is no node009"),
        ("missing-gpu", "node001:gpu8", "has no gpu8"),
        ("missing-gpu", ":gpu1", "names no node"),
        ("swapped-cable", "node001:mlx5_0", "two different"),
        ("swapped-cable", "node001:mlx5_0,mlx5_0", "two different"),
        ("swapped-cable", "node001:mlx5_0,mlx5_9", "has no mlx5_9"),
        ("never-boots", "node001:gpu1", "takes no part"),
    ],
)
def test_what_cannot_be_injected_is_refused_with_a_way_out(fault: str, target: str, words: str) -> None:
    """The error names what was wrong, and its remedy what is possible."""
    with pytest.raises(UsageError, match=words) as caught:
        inject(machines(), fault, target)
    assert caught.value.remedy


def test_each_fault_explains_itself() -> None:
    """`lab faults` has something to print in each column, under the fault's own name."""
    for name, fault in FAULTS.items():
        assert find(name) is fault
        assert fault.name == name
        assert all((fault.does, fault.shows, fault.target))


def test_unknown_machine_is_answered_with_the_known_range() -> None:
    """An operator sees at once what the names look like."""
    with pytest.raises(UsageError) as caught:
        machine_named(machines(), "gpu17")
    assert "node001 to node003" in caught.value.remedy
