"""A campaign's events as JSON-able data, and back: what a journal keeps of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Digest
from clusterctl_burnin.campaign import CampaignEvent, Told
from clusterctl_burnin.hunting.codec import event_from_data, event_to_data
from clusterctl_burnin.hunting.model import Result, Round
from clusterctl_burnin.loads.model import Outcome, Trial


def to_data(event: CampaignEvent) -> dict[str, Any]:
    if isinstance(event, Told):
        return {"round": event.number, "group": list(event.group), "trials": [_trial(t) for t in event.trials]}
    return event_to_data(event)


def from_data(data: Mapping[str, Any]) -> CampaignEvent:
    """Raises ParseError for what is no event of a campaign."""
    if "trials" not in data:
        event = event_from_data(data)
        if isinstance(event, Result):
            raise ParseError(f"this is no event of a campaign: {dict(data)}")
        return event
    try:
        group = tuple(map(str, data["group"]))
        return Told(int(data["round"]), group, tuple(_trial_from(trial) for trial in data["trials"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ParseError(f"this is no event of a campaign: {dict(data)}") from error


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "load": trial.load,
        "members": list(trial.members),
        "outcome": trial.outcome.value,
        "lane": dict(trial.lane),
        "rail": trial.rail,
        "value": trial.value,
        "detail": trial.detail,
        "evidence": list(trial.evidence),
        "remedy": trial.remedy,
        "missing": list(trial.missing),
    }


def _trial_from(data: Mapping[str, Any]) -> Trial:
    return Trial(
        load=str(data["load"]),
        members=tuple(map(str, data["members"])),
        outcome=Outcome(data["outcome"]),
        lane={str(name): str(device) for name, device in data["lane"].items()},
        rail=None if data["rail"] is None else int(data["rail"]),
        value=None if data["value"] is None else float(data["value"]),
        detail=str(data["detail"]),
        evidence=tuple(Digest(str(digest)) for digest in data["evidence"]),
        remedy=str(data.get("remedy", "")),
        missing=tuple(map(str, data.get("missing", ()))),
    )


def one_after_the_other(histories: Iterable[Iterable[CampaignEvent]]) -> tuple[CampaignEvent, ...]:
    """The events of several campaigns of one load as those of one: their rounds are numbered anew."""
    found: list[CampaignEvent] = []
    for history in histories:
        before = max((event.number for event in found if isinstance(event, Round)), default=0)
        for event in history:
            if isinstance(event, (Round, Told)):
                found.append(replace(event, number=event.number + before))
            else:
                found.append(replace(event, round=event.round + before))
    return tuple(found)
