"""Quirks of the lab's MAAS are injected as faults are, shown, and healed."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.fault_injection import MAAS_QUIRKS, inject_all, injected, maas_quirks
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.maas_quirk import MaasQuirk

LAYOUT = Layout(IPv4Network("127.95.0.0/16"))
MACHINES = {machine.name: machine for machine in (build(number, LAYOUT, "of-no-use") for number in (1, 2))}


@pytest.mark.parametrize("quirk", list(MaasQuirk), ids=lambda quirk: quirk.value)
def test_each_quirk_is_injected_into_one_machine(quirk: MaasQuirk) -> None:
    """By its name; its text has what it does and where it was observed."""
    (machine,) = inject_all(MACHINES, MAAS_QUIRKS, f"node002:{quirk.value}")
    assert machine.name == "node002"
    assert machine.maas_quirks == {quirk}
    assert injected(machine, MAAS_QUIRKS) == f"maas-quirks:{quirk.value}"
    assert quirk.does
    assert quirk.source


def test_several_quirks_at_once() -> None:
    """They add up, also with those that the machine has."""
    machine = replace(MACHINES["node001"], maas_quirks=frozenset({MaasQuirk.NO_RACK}))
    (both,) = inject_all({"node001": machine}, MAAS_QUIRKS, "node001:late-500, hostile-events")
    assert set(maas_quirks(both)) == {"maas-quirks:no-rack", "maas-quirks:late-500", "maas-quirks:hostile-events"}


@pytest.mark.parametrize("target", ["node001", "node001:", ":late-500"])
def test_a_target_without_node_or_quirk_is_refused(target: str) -> None:
    """The remedy shows how it is written, with all names."""
    with pytest.raises(UsageError) as caught:
        inject_all(MACHINES, MAAS_QUIRKS, target)
    assert "NODE:QUIRK" in caught.value.remedy
    assert "late-500" in caught.value.remedy


def test_an_unknown_quirk_is_refused() -> None:
    """With the known ones."""
    with pytest.raises(UsageError, match="no quirk 'late-501'") as caught:
        inject_all(MACHINES, MAAS_QUIRKS, "node001:late-501")
    assert "late-500" in caught.value.remedy
