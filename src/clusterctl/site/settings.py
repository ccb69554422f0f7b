"""`site.yml` as a whole, and the sections that are small."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from clusterctl.site.bmc import BmcSettings
from clusterctl.site.burnin import CheckSettings, StorageSettings, SuiteChanges
from clusterctl.site.configure import ConfigureSettings, WaveSettings
from clusterctl.site.fields import FileName, Flag, Name, Positive, Secret, SecretRef, UserName, Words, section
from clusterctl.site.monitoring import MonitoringSettings
from clusterctl.site.netbox import NetboxSettings
from clusterctl.site.network import NetworkSettings
from clusterctl.site.nodes import NodesSettings
from clusterctl.site.notify import NotifySettings
from clusterctl.site.provisioning import Installers, MaasProvisioning, PxeProvisioning
from clusterctl.site.scheduling import JobSettings, NightlySettings, PublishSettings, SchedulerSettings
from clusterctl.site.tickets import TicketSettings
from clusterctl.site.ufm import SwitchSoftwareSettings, UfmSettings, WatchSettings
from clusterctl.site.urls import open_journal_url
from clusterctl.site.web import WebSettings

Seconds = Annotated[float, Field(gt=0, le=86400)]
_OpenUrl = Annotated[str, AfterValidator(open_journal_url), Tag("Url")]
JournalUrl = Annotated[
    _OpenUrl | Annotated[Secret, Tag("Reference")],
    Discriminator(lambda value: "Reference" if isinstance(value, dict | SecretRef) else "Url"),
]
"""A SQLAlchemy URL (a relative SQLite path lies in the site directory); a reference if the URL has a password."""


@section
class SshSettings:
    """The login of the controller on the hosts."""

    user: UserName = "ops"
    private_key: Words
    host_ca: Annotated[
        str, Field(description="file with public keys of the authorities that sign host keys; adopt trusts these")
    ] = ""


@section
class FabricSettings:
    """The wiring plans, and the commands that read the InfiniBand fabric."""

    plan: Words = "wiring.csv"
    ethernet: Annotated[str, Field(description="the plan of network and management cables, where there is one")] = ""
    ibnetdiscover: Annotated[tuple[Words, ...], Field(min_length=1)] = ("ibnetdiscover",)
    sminfo: tuple[Words, ...] = ()
    ibportstate: Annotated[tuple[Words, ...], Field(min_length=1)] = ("ibportstate",)
    smpquery: Annotated[tuple[Words, ...], Field(min_length=1)] = ("smpquery",)
    ibqueryerrors: Annotated[tuple[Words, ...], Field(min_length=1)] = ("ibqueryerrors",)
    dump_fts: Annotated[tuple[Words, ...], Field(min_length=1)] = ("dump_fts",)
    telemetry: tuple[Words, ...] = ()
    limits: Annotated[
        Words, Field(description="limits by name, or a file of the site, by which links and their counters are judged")
    ] = "ndr"
    reboots: Annotated[Positive, Field(le=4096, description="how many hosts may reboot at once, over all runs")] = 64
    sm_busy: Annotated[
        Positive, Field(description="packets a second of the subnet manager above which a quarter of them may")
    ] = 500
    ufm: Annotated[UfmSettings | None, Field(description="the UFM that manages this fabric, where there is one")] = None
    switch_software: Annotated[
        SwitchSoftwareSettings | None, Field(description="images of the switches' software, and where they are")
    ] = None
    watch: Annotated[WatchSettings | None, Field(description="what fabric watch does about bad links")] = None


@section
class Batch:
    """How many nodes each step works on at once."""

    discover: Positive = 64
    install: Positive = 32
    configure: Positive = 50
    cable: Positive = 4096
    burnin: Positive = 64


@section
class Deadlines:
    """Seconds that a step may take for one node."""

    discover: Positive = 1200
    install: Positive = 5400
    configure: Positive = 3600
    cable: Positive = 300
    burnin: Positive = 7200


@section
class TimingSettings:
    """Seconds between two polls of slow work, and seconds that some of it may take."""

    install_poll_s: Annotated[Seconds, Field(description="between two polls of the installer")] = 15
    link_training_s: Annotated[Seconds, Field(description="that links may take to train after a boot")] = 60
    settings_poll_s: Annotated[Seconds, Field(description="between two polls of a BMC that applies settings")] = 10
    settings_report_s: Annotated[Seconds, Field(description="until a BMC reports what a boot has changed")] = 600
    load_sample_s: Annotated[Seconds, Field(description="between two samples of a node under load")] = 1


@section
class ParallelSettings:
    """How many sessions and loads run at the same time, over all nodes."""

    checks: Annotated[Positive, Field(description="nodes that run their checks")] = 256
    loads: Annotated[Positive, Field(description="nodes under a load of one node")] = 4096
    jobs: Annotated[Positive, Field(description="jobs of a load of several nodes")] = 4096
    lldp: Annotated[Positive, Field(description="nodes asked for their LLDP neighbours")] = 64


@section
class StaggerSettings:
    """How many machines of one rack, one PDU or the whole site may be switched on together."""

    per: Literal["rack", "pdu", "site"] = "rack"
    at_once: Positive = 4
    seconds: Annotated[float, Field(ge=0, le=600)] = 5


@section
class PowerSettings:
    """`at_most`: how many machines one command may switch off or cycle, unless its options allow more."""

    stagger: StaggerSettings = StaggerSettings()
    at_most: Positive = 16


@section
class AttemptLimits:
    """How often a step is tried, and how long evidence counts."""

    attempts: Annotated[int, Field(ge=1, le=10, strict=True)] = 2
    max_evidence_age_days: Positive = 7


@section
class OffenderSettings:
    """Machines and parts that fail again and again. `suite`: the suite that `revalidate` runs on such a node."""

    suite: FileName = "revalidate"


@section
class ClaimSettings:
    """How two runs exclude each other."""

    lease_s: Annotated[
        float, Field(ge=2, le=3600, description="seconds without a renewal after which a claim expires")
    ] = 120


@section
class EvidenceSettings:
    """What the journal keeps of the evidence of checks that passed."""

    pass_days: Annotated[
        int | None,
        Field(ge=1, le=3650, strict=True, description="after so many days journal compact removes passing raw output"),
    ] = None


@section
class SiteSettings:
    """`site.yml`."""

    version: Literal[1]
    name: Name
    simulated: Flag = False
    nodes: NodesSettings
    bmc: BmcSettings
    skus: Annotated[tuple[FileName, ...], Field(min_length=1)]
    provisioning: Installers
    ssh: SshSettings
    fabric: FabricSettings = FabricSettings()
    network: NetworkSettings = NetworkSettings()
    configure: ConfigureSettings = ConfigureSettings()
    burnin: Annotated[FileName, Field(description="the suite that admits to gold")] = "bootstrap"
    suite: SuiteChanges = SuiteChanges()
    checks: CheckSettings = CheckSettings()
    storage: Annotated[StorageSettings | None, Field(description="what the load storage_read reads")] = None
    offenders: OffenderSettings = OffenderSettings()
    batch: Batch = Batch()
    waves: WaveSettings = WaveSettings()
    deadlines: Deadlines = Deadlines()
    timing: TimingSettings = TimingSettings()
    parallel: ParallelSettings = ParallelSettings()
    power: PowerSettings = PowerSettings()
    limits: AttemptLimits = AttemptLimits()
    claims: ClaimSettings = ClaimSettings()
    scheduler: SchedulerSettings | None = None
    jobs: JobSettings = JobSettings()
    nightly: NightlySettings | None = None
    publish: PublishSettings = PublishSettings()
    notify: NotifySettings | None = None
    monitoring: MonitoringSettings = MonitoringSettings()
    netbox: NetboxSettings | None = None
    tickets: TicketSettings | None = None
    pool: Annotated[str, Field(description="file that names the gold nodes")] = "gold.json"
    journal: JournalUrl = "sqlite:///state/journal.db"
    journal_replica: Annotated[
        JournalUrl | None, Field(description="a standby of the journal's PostgreSQL, which the page and metrics read")
    ] = None
    evidence: EvidenceSettings = EvidenceSettings()
    web: WebSettings = WebSettings()
    site_keys: Annotated[
        tuple[Secret, ...],
        Field(description="Fernet keys: the first encrypts backups and the BMC passwords that we make, each decrypts"),
    ] = ()

    @property
    def maas(self) -> MaasProvisioning | None:
        """Return the MAAS backend, or None."""
        return next((item for item in self.provisioning if isinstance(item, MaasProvisioning)), None)

    @property
    def pxe(self) -> PxeProvisioning | None:
        """Return the PXE backend, or None."""
        return next((item for item in self.provisioning if isinstance(item, PxeProvisioning)), None)

    @property
    def expected_release(self) -> str:
        """Return the OS release that hosts must run; empty where the site requires none."""
        return self.checks.expected_release(self.provisioning)
