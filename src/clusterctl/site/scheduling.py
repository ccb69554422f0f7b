"""`scheduler`, `nightly` and `publish` of a site: where jobs come from, and when idle nodes are tested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, tzinfo
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.nightly.window import FORM, parse_window
from clusterctl.site.fields import FileName, Positive, Words, section, shaped

Command = Annotated[tuple[Words, ...], Field(min_length=1)]
SlurmKey = Annotated[str, AfterValidator(shaped(r"[A-Za-z][A-Za-z0-9]*", "the name of a setting of slurm.conf"))]


Line = Annotated[str, AfterValidator(shaped(r"[^\x00-\x1f\x7f#]+", "one line without a #"))]


@section
class SlurmHardware:
    """What a SKU's nodes have, for Slurm, where their BMCs do not report it.

    `memory_percent`: share of the memory that jobs may have; the rest is the system's.
    """

    sockets: Positive | None = None
    cores_per_socket: Positive | None = None
    threads_per_core: Annotated[int, Field(ge=1, le=8, strict=True)] = 2
    memory_percent: Annotated[int, Field(ge=10, le=100, strict=True)] = 95


@section
class SlurmClusterSettings:
    """What `clusterctl export slurm` writes (docs/how-to/slurm.md).

    `controllers`: NAME or NAME(ADDRESS) of each slurmctld, the primary first; `accounting`: the host of slurmdbd, the
    primary where empty. `settings`: further lines of slurm.conf, or other values.
    """

    name: Annotated[str, AfterValidator(shaped(r"[a-z][a-z0-9_]{0,39}", "lower-case letters, digits and _"))]
    controllers: Annotated[
        tuple[
            Annotated[str, AfterValidator(shaped(r"[A-Za-z0-9.-]+(\([A-Za-z0-9.:-]+\))?", "NAME or NAME(ADDRESS)"))],
            ...,
        ],
        Field(min_length=1),
    ]
    accounting: Annotated[str, Field(pattern=r"^[A-Za-z0-9.:-]*$")] = ""
    partition: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")] = "main"
    gpu_device: Annotated[str, Field(pattern=r"^/[A-Za-z0-9_./-]+$")] = "/dev/nvidia"
    hardware: Annotated[Mapping[str, SlurmHardware], Field(description="by SKU")] = field(default_factory=dict)
    settings: Annotated[Mapping[SlurmKey, Line], Field(description="of slurm.conf")] = field(default_factory=dict)
    plugins: Annotated[tuple[Line, ...], Field(description="lines of plugstack.conf")] = ()


@section
class SlurmSettings:
    """`ssh`: the host with sinfo and scontrol, if it is not this one. `feature`: the Slurm feature of gold nodes.
    `cluster`: what the files of Slurm are written from; none where Slurm was set up by other means.
    """

    kind: Literal["slurm"]
    ssh: Annotated[str, Field(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.@-]*)?$")] = ""
    feature: Annotated[str, Field(pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")] = ""
    cluster: SlurmClusterSettings | None = None


@section
class CommandSettings:
    """Commands of the site (docs/how-to/nightly.md)."""

    kind: Literal["command"]
    idle: Command
    take: Command
    give_back: Command
    held: Command


@section
class ListSettings:
    """Nodes, by name or pattern, that never get jobs."""

    kind: Literal["list"]
    nodes: Command


@section
class JobSettings:
    """Supervised jobs. `keep_days`: of the evidence in `state/jobs`; what the journal has of them stays.

    `user_runs`, `user_spares`: what one user without rights on the controller may have at a time, and for each run.
    """

    keep_days: Annotated[
        int, Field(ge=1, le=3650, strict=True, description="after which what was collected of a job is removed")
    ] = 90
    proven_fault: Annotated[
        Literal["drain", "quarantine", "revalidate"],
        Field(description="what follows for a host whose hardware is proven to blame for a job's failure"),
    ] = "drain"
    revalidations_a_day: Annotated[int, Field(ge=0, le=1000, strict=True)] = 2
    user_runs: Annotated[int, Field(ge=0, le=1000, strict=True, description="open runs of one user; 0: none")] = 4
    user_spares: Annotated[int, Field(ge=0, le=1000, strict=True, description="spares of one run of a user")] = 1


SchedulerSettings = Annotated[SlurmSettings | CommandSettings | ListSettings, Field(discriminator="kind")]


def _zone(value: str) -> str:
    zone_named(value)
    return value


def zone_named(name: str) -> tzinfo:
    """Return the time zone of the IANA database. Raises `ValueError`."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise ValueError("must be a time zone such as Europe/Berlin") from None


def _window(value: str) -> str:
    try:
        parse_window(value, UTC, where="")
    except UsageError as error:
        raise ValueError(f"{error.message}: {FORM}") from None
    return value


@section
class PublishSettings:
    """Where gold nodes are published in addition to the pool file, and how many nodes the jobs need."""

    inventory: Annotated[
        str, Field(description="an Ansible inventory with the group gold", pattern=r"^(.+\.ya?ml)?$")
    ] = ""
    needed: Positive | None = None
    spares_percent: Annotated[int, Field(ge=0, le=100, strict=True)] = 10


@section
class NightlySettings:
    """When nightly tests run, on how many nodes, how long and how often."""

    window: Annotated[str, AfterValidator(_window)] = "02:00-05:00"
    time_zone: Annotated[str, AfterValidator(_zone)] = "UTC"
    percent: Annotated[int, Field(ge=1, le=100, strict=True)] = 5
    most: Positive | None = None
    node_minutes: Positive = 30
    expiry_days: Positive = 14
    alarm_hours: Positive = 26
    suite: Annotated[FileName, Field(description="a shipped one, or the site's own")] = "nightly"
    metrics: Annotated[str, Field(description="a .prom file of node_exporter's textfile collector")] = ""
