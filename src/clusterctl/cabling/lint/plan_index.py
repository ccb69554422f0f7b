"""Problems of a wiring plan, and the plan as the rules of the linter use it."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterctl.fleet.fabric.wiring import PlanDraft, PlannedCable, PortName

_LINES_SHOWN = 50


class ProblemKind(enum.Enum):
    """Why a plan cannot be built, or should not be."""

    PORT_TWICE = "port_twice"
    CABLE_TWICE = "cable_twice"
    SELF_LINK = "self_link"
    HOST_TO_HOST = "host_to_host"
    PORT_NUMBER = "port_number"
    TWO_PLACES = "two_places"
    SERIAL_TWICE = "serial_twice"
    MAC_TWICE = "mac_twice"
    CAGE_TWICE = "cage_twice"
    CAGE_LABEL = "cage_label"
    CAGE_SPLIT = "cage_split"
    ADAPTER_COUNT = "adapter_count"
    SIMILAR_NAMES = "similar_names"
    ADAPTER_RAIL = "adapter_rail"
    WRONG_RAIL = "wrong_rail"
    MIXED_RAILS = "mixed_rails"
    OVERSUBSCRIBED = "oversubscribed"
    UNEVEN_UPLINKS = "uneven_uplinks"
    ISLAND = "island"
    NAME_CONTRADICTED = "name_contradicted"


@dataclass(frozen=True, slots=True)
class PlanProblem:
    """`cause` is one sentence, `action` one line for the planner; `where` are `file:line`s, at most 50 of them."""

    kind: ProblemKind
    cause: str
    action: str
    where: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanRules:
    """The rules that the plan must follow.

    radix            ports of every switch; None if not given: the ports of the switch's model, 64 for unknown models
    oversubscription how many host links may share one uplink of a leaf; 1 is non-blocking
    rails            whether a leaf may carry one rail only
    separate_rails   whether each rail is a network of its own
    """

    radix: int | None = None
    oversubscription: float = 1.0
    rails: bool = True
    separate_rails: bool = False


@dataclass(frozen=True, slots=True)
class ListedPort:
    """A cable, and the file that lists it."""

    cable: PlannedCable
    draft: PlanDraft

    @property
    def where(self) -> str:
        return self.draft.at(self.cable.line)

    @property
    def ends(self) -> tuple[PortName, PortName]:
        return (self.cable.source, self.cable.destination)


@dataclass(frozen=True, slots=True)
class PlanIndex:
    """All files of a plan at once. `switches` have their cables by device; `host_links` are (switch port, adapter)."""

    drafts: tuple[PlanDraft, ...]
    listed: tuple[ListedPort, ...]
    hosts: frozenset[str]
    switches: Mapping[str, tuple[ListedPort, ...]]
    models: Mapping[str, str]

    def far(self, entry: ListedPort, switch: str) -> PortName:
        """Return the end that is not at `switch`."""
        cable = entry.cable
        return cable.destination if cable.source.device == switch else cable.source

    def near(self, entry: ListedPort, switch: str) -> PortName:
        """Return the end at `switch`."""
        cable = entry.cable
        return cable.source if cable.source.device == switch else cable.destination


def index(drafts: Iterable[PlanDraft]) -> PlanIndex:
    """Return the files as one plan. A device is a host if it is a host in one of the files."""
    drafts = tuple(drafts)
    hosts = frozenset(host for draft in drafts for host in draft.hosts)
    listed = tuple(ListedPort(cable, draft) for draft in drafts for cable in draft.cables)
    models = {device: model for draft in drafts for device, model in draft.models.items()}
    return PlanIndex(drafts, listed, hosts, _by_switch(listed, hosts), models)


def _by_switch(listed: Iterable[ListedPort], hosts: frozenset[str]) -> dict[str, tuple[ListedPort, ...]]:
    switches: dict[str, list[ListedPort]] = defaultdict(list)
    for entry in listed:
        source, destination = entry.cable.source.device, entry.cable.destination.device
        for device in (source,) if source == destination else (source, destination):
            if device not in hosts:
                switches[device].append(entry)
    return {name: tuple(entries) for name, entries in switches.items()}


def lines(entries: Iterable[ListedPort]) -> tuple[str, ...]:
    """Return where the cables are listed, as a `PlanProblem` has it."""
    return tuple(dict.fromkeys(entry.where for entry in entries))[:_LINES_SHOWN]
