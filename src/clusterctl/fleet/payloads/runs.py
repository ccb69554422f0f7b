"""Runs, nights and hunting campaigns: payloads of the streams `run` and `campaign`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from clusterctl.fleet.event import Kind, Payload
from clusterctl.fleet.node import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Payload):
    kind: ClassVar = Kind.RUN_STARTED
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Payload):
    kind: ClassVar = Kind.RUN_FINISHED


@dataclass(frozen=True, slots=True, kw_only=True)
class NightStarted(Payload):
    """`closes`: the end of the window; `percent` of the gold nodes may be out at a time."""

    kind: ClassVar = Kind.NIGHT_STARTED
    closes: datetime
    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NightEnded(Payload):
    """`tested` and `stuck` have the reason of each node; `failed` are those that are no longer gold."""

    kind: ClassVar = Kind.NIGHT_ENDED
    tested: tuple[str, ...]
    failed: tuple[str, ...]
    stuck: Mapping[str, str]
    ended: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WavesStopped(Payload):
    """No more nodes begin `step` in this run."""

    kind: ClassVar = Kind.WAVES_STOPPED
    step: Step
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignStarted(Payload):
    """How a campaign measures: only one with equal settings continues it."""

    kind: ClassVar = Kind.CAMPAIGN_STARTED
    load: str
    suite: str
    limits: str
    pair_seconds: int | None = None
    group_iterations: int | None = None
    hang_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignAsked(Payload):
    """A round that begins, as `burnin.campaign` writes it."""

    kind: ClassVar = Kind.CAMPAIGN_ASKED
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignAnswered(Payload):
    """The result of one group of a round, as `burnin.campaign` writes it."""

    kind: ClassVar = Kind.CAMPAIGN_ANSWERED
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignDropped(Payload):
    """A host that no longer answers, as `burnin.campaign` writes it."""

    kind: ClassVar = Kind.CAMPAIGN_DROPPED
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignEnded(Payload):
    """`by`: the campaign that continues it; empty where it came to its end."""

    kind: ClassVar = Kind.CAMPAIGN_ENDED
    by: str = ""


PAYLOADS: tuple[type[Payload], ...] = (
    RunStarted, RunFinished, NightStarted, NightEnded, WavesStopped, CampaignStarted, CampaignAsked, CampaignAnswered,
    CampaignDropped, CampaignEnded,
)  # fmt: skip
