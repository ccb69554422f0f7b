"""All manners, by name: a new one is a member of `Manner` and a file here with one subclass of `Habit`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.context import Desk
from clusterctl_lab.emulators.redfish.manners.habit import Certificate, Habit
from clusterctl_lab.machine import Machine

_NOT_MANNERS = {"habit", "registry"}
_PACKAGE = __name__.rpartition(".")[0]


def _habits() -> Iterator[type[Habit]]:
    for found in pkgutil.iter_modules(importlib.import_module(_PACKAGE).__path__):
        if found.name not in _NOT_MANNERS:
            module = importlib.import_module(f"{_PACKAGE}.{found.name}")
            yield next(
                each
                for each in vars(module).values()
                if isinstance(each, type) and issubclass(each, Habit) and each.__module__ == module.__name__
            )


_FOUND = {habit.manner: habit for habit in _habits()}
HABITS: Mapping[Manner, type[Habit]] = MappingProxyType({manner: _FOUND[manner] for manner in Manner})
"""In the order of `Manner`."""


class Habits:
    """The manners of one BMC, as its machine has them at the moment; what one remembers ends when it does."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._alive: dict[Manner, Habit] = {}

    def now(self) -> tuple[Habit, ...]:
        wanted = self._desk.machine.bmc.manners
        if wanted != self._alive.keys():
            self._alive = {
                manner: self._alive.get(manner) or habit(self._desk)
                for manner, habit in HABITS.items()
                if manner in wanted
            }
        return tuple(self._alive.values())


def certificate_of(machine: Machine) -> Certificate:
    """Which certificate its BMC shows."""
    shown = (HABITS[manner].certificate for manner in Manner if manner in machine.bmc.manners)
    return next((each for each in shown if each is not Certificate.OWN), Certificate.OWN)
