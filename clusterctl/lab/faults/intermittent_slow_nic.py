"""An HCA that is slow for a part of the time, at random: passes one test, fails the next."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl.lab.faults.fault import Fault, hca_named, with_hca
from clusterctl.lab.faults.slow_nic import MBIT_S
from clusterctl.lab.machine import Machine, Shaping

SHARE = "0.5"
LEAST, MOST = 0.1, 0.9


def _apply(machine: Machine, part: str) -> Machine:
    name, _, share = part.partition("=")
    hca = hca_named(machine, name)
    slow = Shaping(MBIT_S, _share(machine, share or SHARE))
    return with_hca(machine, replace(hca, shaping=slow)).with_fault(f"intermittent-slow-nic:{hca.name}={slow.share:g}")


def _share(machine: Machine, text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not LEAST <= share <= MOST:
        remedy = f"write a share of the time from {LEAST} to {MOST}, like {machine.name}:mlx5_0=0.5"
        raise UsageError(f"{text!r} is no share of the time", where=machine.name, remedy=remedy)
    return share


FAULT = Fault(
    name="intermittent-slow-nic",
    does=f"shapes one HCA's traffic to {MBIT_S} Mbit/s for a share of the time, at random (half of it by default)",
    shows="ib_write_bw over that HCA is slow with some partners and at some times",
    target="NODE or NODE:mlx5_3=0.3",
    apply=_apply,
)
