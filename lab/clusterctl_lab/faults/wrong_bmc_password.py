"""A BMC that somebody has given another password: its factory's, or an earlier owner's."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine

ANOTHER = "of-an-earlier-owner"


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, bmc=replace(machine.bmc, password=ANOTHER)).with_fault("wrong-bmc-password")


FAULT = Fault(
    name="wrong-bmc-password",
    does="gives the BMC another password than the site has",
    shows="HTTP 401 to every login, over Redfish, from us and from MAAS",
    target="NODE",
    apply=_apply,
)
