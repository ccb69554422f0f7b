"""A hunt's events as JSON-able data, and back: what a journal keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterctl.fleet.errors import ParseError
from clusterctl_burnin.hunting.model import Result, Round
from clusterctl_burnin.hunting.record import Dropped, HuntEvent
from clusterctl_burnin.loads.model import Outcome


def event_to_data(event: HuntEvent) -> dict[str, Any]:
    match event:
        case Round(number, groups):
            return {"asked": number, "groups": [list(group) for group in groups]}
        case Result(number, group, outcome, rail, named):
            told = {"told": number, "group": list(group), "outcome": outcome.value, "rail": rail}
            return {**told, "named": list(named)} if named else told
        case Dropped(host, number):
            return {"dropped": host, "round": number}


def event_from_data(data: Mapping[str, Any]) -> HuntEvent:
    """Raises ParseError for what is no event of a hunt."""
    try:
        if "asked" in data:
            return Round(int(data["asked"]), tuple(tuple(map(str, group)) for group in data["groups"]))
        if "told" in data:
            group = tuple(map(str, data["group"]))
            rail = None if data["rail"] is None else int(data["rail"])
            return Result(
                int(data["told"]), group, Outcome(data["outcome"]), rail, tuple(map(str, data.get("named", ())))
            )
        return Dropped(str(data["dropped"]), int(data["round"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ParseError(f"this is no event of a hunt: {dict(data)}") from error
