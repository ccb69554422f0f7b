"""What may stand in `site.yml`. Pydantic validates; unknown fields are errors."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, field_validator, model_validator

from clusterctl.edges.site.bmc_settings import BmcSettings
from clusterctl.edges.site.check_settings import CheckSettings
from clusterctl.edges.site.configure_settings import Configure
from clusterctl.edges.site.fields import (
    FileName,
    Fingerprint,
    Name,
    Positive,
    Secret,
    SecretRef,
    Strict,
    UserName,
    Words,
)
from clusterctl.edges.site.network import NetworkSettings
from clusterctl.edges.site.nightly_settings import NightlySettings, PublishSettings, SchedulerSettings
from clusterctl.edges.site.provisioning import Installers, MaasProvisioning, PxeProvisioning
from clusterctl.edges.site.urls import open_journal_url
from clusterctl.edges.site.waves import WaveSettings
from clusterctl_burnin.suites.fields import GroupIterations, NodeSeconds, PairSeconds, Rounds

MAX_RANGE = 4096
Seconds = Annotated[float, Field(gt=0, le=86400)]
_OpenUrl = Annotated[str, AfterValidator(open_journal_url), Tag("Url")]
JournalUrl = Annotated[
    _OpenUrl | Annotated[Secret, Tag("Reference")],
    Discriminator(lambda value: "Reference" if isinstance(value, (dict, SecretRef)) else "Url"),
]
"""A SQLAlchemy URL (a relative SQLite path lies in the site directory); by reference where it holds a password."""


class ListedNode(Strict):
    name: Name
    bmc: str
    serial: str = ""
    rack: str = ""
    unit: Annotated[int, Field(ge=1, le=60, strict=True)] | None = None
    pdu: str = ""
    tls_fingerprint: Fingerprint = ""
    address: Annotated[str, Field(description="of the host itself")] = ""

    @field_validator("bmc")
    @classmethod
    def _bmc(cls, value: str) -> str:
        return address(value)

    @field_validator("address")
    @classmethod
    def _address(cls, value: str) -> str:
        return address(value) if value else ""


class Nodes(Strict):
    """Addresses one by one, ranges, or the vendor's sheet; they add up."""

    csv: str | None = None
    ranges: tuple[str, ...] = ()
    listed: tuple[ListedNode, ...] = Field((), alias="list")
    name_prefix: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,40}$")] = "node"

    @field_validator("ranges")
    @classmethod
    def _ranges(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for item in value:
            expand_range(item)
        return value

    @model_validator(mode="after")
    def _some(self) -> Nodes:
        if not (self.csv or self.ranges or self.listed):
            raise ValueError("name the machines: csv, ranges or list")
        return self


class Ssh(Strict):
    user: UserName = "ops"
    private_key: Words


class FabricSettings(Strict):
    plan: Words
    ethernet: Annotated[str, Field(description="the plan of network and management cables, where there is one")] = ""
    ibnetdiscover: Annotated[tuple[Words, ...], Field(min_length=1)] = ("ibnetdiscover",)
    sminfo: tuple[Words, ...] = ()
    ibportstate: Annotated[tuple[Words, ...], Field(min_length=1)] = ("ibportstate",)
    smpquery: Annotated[tuple[Words, ...], Field(min_length=1)] = ("smpquery",)
    ibqueryerrors: Annotated[tuple[Words, ...], Field(min_length=1)] = ("ibqueryerrors",)


class Batch(Strict):
    """How many nodes at once in each step."""

    discover: Positive = 64
    install: Positive = 32
    configure: Positive = 50
    cable: Positive = 4096
    burnin: Positive = 64


class Deadlines(Strict):
    """Seconds that a step may take for one node."""

    discover: Positive = 1200
    install: Positive = 5400
    configure: Positive = 3600
    cable: Positive = 300
    burnin: Positive = 7200


class TimingSettings(Strict):
    """Seconds between two polls of slow work, and seconds that some of it may take."""

    install_poll_s: Annotated[Seconds, Field(description="between two polls of the installer")] = 15
    link_training_s: Annotated[Seconds, Field(description="that links may take to train after a boot")] = 60
    settings_poll_s: Annotated[Seconds, Field(description="between two polls of a BMC that applies settings")] = 10
    settings_report_s: Annotated[Seconds, Field(description="until a BMC reports what a boot has changed")] = 600


class ParallelSettings(Strict):
    """How many sessions and loads run at the same time, over all nodes."""

    checks: Annotated[Positive, Field(description="nodes whose checks run")] = 256
    loads: Annotated[Positive, Field(description="nodes under a load of one node")] = 4096
    jobs: Annotated[Positive, Field(description="jobs of a load of several nodes")] = 4096
    lldp: Annotated[Positive, Field(description="nodes asked for their LLDP neighbours")] = 64


class StaggerSettings(Strict):
    """How many machines may come on together: of each rack, of each PDU, or of the whole site where its racks share a
    feed.
    """

    per: Literal["rack", "pdu", "site"] = "rack"
    at_once: Positive = 4
    seconds: Annotated[float, Field(ge=0, le=600)] = 5


class PowerSettings(Strict):
    """`at_most`: so many machines one command may switch off or cycle, unless the person says more."""

    stagger: StaggerSettings = StaggerSettings()
    at_most: Positive = 16


class Limits(Strict):
    attempts: Annotated[int, Field(ge=1, le=10, strict=True)] = 2
    max_evidence_age_days: Positive = 7


class SuiteChanges(Strict):
    """What the site changes about the suite that `burnin` names."""

    pair_rounds: Rounds | None = None
    group_rounds: Rounds | None = None
    pair_seconds: PairSeconds | None = None
    group_iterations: GroupIterations | None = None
    hang_seconds: PairSeconds | None = None
    node_seconds: dict[str, NodeSeconds] | None = None


class OffenderSettings(Strict):
    """Machines and parts that fail again and again: the suite that `revalidate` proves such a node by."""

    suite: FileName = "revalidate"


class ClaimSettings(Strict):
    """How two runs keep out of each other's way."""

    lease_s: Annotated[float, Field(ge=2, le=3600, description="seconds until a run that went silent is forgotten")] = (
        120
    )


class SiteFile(Strict):
    """`site.yml`."""

    version: Literal[1]
    name: Name
    simulated: Annotated[bool, Field(strict=True)] = False
    nodes: Nodes
    bmc: BmcSettings
    skus: Annotated[tuple[FileName, ...], Field(min_length=1)]
    provisioning: Installers
    ssh: Ssh
    fabric: FabricSettings
    network: NetworkSettings = NetworkSettings()
    configure: Configure = Configure()
    burnin: Annotated[FileName, Field(description="the suite that admits to gold")] = "bootstrap"
    suite: SuiteChanges = SuiteChanges()
    checks: CheckSettings = CheckSettings()
    offenders: OffenderSettings = OffenderSettings()
    batch: Batch = Batch()
    waves: WaveSettings = WaveSettings()
    deadlines: Deadlines = Deadlines()
    timing: TimingSettings = TimingSettings()
    parallel: ParallelSettings = ParallelSettings()
    power: PowerSettings = PowerSettings()
    limits: Limits = Limits()
    claims: ClaimSettings = ClaimSettings()
    scheduler: SchedulerSettings | None = None
    nightly: NightlySettings | None = None
    publish: PublishSettings = PublishSettings()
    pool: Annotated[str, Field(description="file that names the gold nodes")] = "gold.json"
    journal: JournalUrl = "sqlite:///state/journal.db"

    @property
    def maas(self) -> MaasProvisioning | None:
        """None where the site has none."""
        return next((item for item in self.provisioning if isinstance(item, MaasProvisioning)), None)

    @property
    def pxe(self) -> PxeProvisioning | None:
        """None where the site has none."""
        return next((item for item in self.provisioning if isinstance(item, PxeProvisioning)), None)


def address(value: str) -> str:
    """An IPv4/IPv6 address, canonical."""
    try:
        found = ipaddress.ip_address(value.strip())
    except ValueError:
        raise ValueError("must be an IP address, like 10.20.0.17") from None
    if found.is_unspecified or found.is_multicast or found == ipaddress.IPv4Address("255.255.255.255"):
        raise ValueError("must be the address of one machine, like 10.20.0.17")
    return str(found)


def expand_range(value: str) -> tuple[str, ...]:
    """`10.20.0.11-10.20.0.74` or `10.20.0.0/26` (hosts only) → addresses; at most 4,096."""
    try:
        start, count = _span(value)
    except ValueError:
        raise ValueError("must be FIRST-LAST or a network, like 10.20.0.11-10.20.0.74 or 10.20.0.0/26") from None
    if not 0 < count <= MAX_RANGE:
        raise ValueError(f"a range runs upwards and holds at most {MAX_RANGE} addresses")
    return tuple(str(start + offset) for offset in range(count))


def _span(value: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]:
    """First address and how many."""
    first, dash, last = (part.strip() for part in value.partition("-"))
    if dash:
        start = ipaddress.ip_address(first)
        return start, int(ipaddress.ip_address(last)) - int(start) + 1
    network = ipaddress.ip_network(first)
    edges = 0 if network.num_addresses <= 2 else 1
    return network[edges], network.num_addresses - 2 * edges
