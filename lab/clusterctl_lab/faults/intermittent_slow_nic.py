"""An HCA that is slow for a part of the time, at random: passes one test, fails the next."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.faults.fault import Fault, hca_named, with_hca
from clusterctl_lab.faults.slow_nic import MBIT_S
from clusterctl_lab.machine import Machine, Shaping

SHARE, LEAST, MOST = 0.5, 0.1, 0.9
CYCLE_S, SHORTEST_S, LONGEST_S = 10.0, 1.0, 86_400.0


def _apply(machine: Machine, part: str) -> Machine:
    name, _, spells = part.partition("=")
    share, _, cycle = spells.partition("/")
    hca = hca_named(machine, name)
    slow = Shaping(MBIT_S, _share(machine, share), _cycle(machine, cycle))
    target = f"{hca.name}={slow.share:g}/{slow.cycle_s:g}"
    return with_hca(machine, replace(hca, shaping=slow)).with_fault(f"intermittent-slow-nic:{target}")


def _share(machine: Machine, text: str) -> float:
    share = _number(text) if text else SHARE
    if not LEAST <= share <= MOST:
        remedy = f"write a share of the time from {LEAST} to {MOST}, like {machine.name}:mlx5_0=0.5"
        raise UsageError(f"{text!r} is no share of the time", where=machine.name, remedy=remedy)
    return share


def _cycle(machine: Machine, text: str) -> float:
    seconds = _number(text) if text else CYCLE_S
    if not SHORTEST_S <= seconds <= LONGEST_S:
        remedy = (
            f"write how long a bad and a good spell together take, from {SHORTEST_S:g} to {LONGEST_S:g} seconds, like "
            f"{machine.name}:mlx5_0=0.5/60"
        )
        raise UsageError(f"{text!r} is no such time", where=machine.name, remedy=remedy)
    return seconds


def _number(text: str) -> float:
    """0, which is never allowed here, for what is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0


FAULT = Fault(
    name="intermittent-slow-nic",
    does=f"shapes one HCA's traffic to {MBIT_S} Mbit/s for a share of the time, at random, beginning with a bad spell "
    f"(half of the time by default, a bad and a good spell about {CYCLE_S:g} s)",
    shows="ib_write_bw over that HCA is slow with some partners and at some times",
    target="NODE or NODE:mlx5_3=0.3 or NODE:mlx5_3=0.3/60",
    apply=_apply,
)
