"""What may stand in `site.yml` and in a SKU file. Pydantic validates; unknown fields are errors."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

MAX_RANGE = 4096

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", description="a host name label")]
Count = Annotated[int, Field(ge=0, le=100_000)]
Positive = Annotated[int, Field(ge=1, le=100_000)]


class Strict(BaseModel):
    """Frozen, and nothing but the named fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SecretRef(Strict):
    """Where a secret is kept; never the secret itself. Exactly one of the three."""

    env: str | None = None
    file: str | None = None
    vault: str | None = Field(None, description="an ansible-vault encrypted file")
    vault_password_file: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _no_plain_text(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError(  # noqa: TRY004 — pydantic turns a ValueError into a field error
                "a secret never stands in this file: write {env: NAME}, {file: PATH} or {vault: PATH}"
            )
        return value

    @model_validator(mode="after")
    def _exactly_one(self) -> SecretRef:
        if sum(ref is not None for ref in (self.env, self.file, self.vault)) != 1:
            raise ValueError("give exactly one of env, file, vault")
        if self.vault is not None and self.vault_password_file is None:
            raise ValueError("vault needs vault_password_file")
        return self


def _hidden(value: Any) -> Any:
    """A secret written in the wrong place must not be repeated in the error message."""
    return value if isinstance(value, dict) else object()


Secret = Annotated[SecretRef, BeforeValidator(_hidden)]


class ListedNode(Strict):
    name: Name
    bmc: str
    serial: str = ""
    rack: str = ""
    unit: Annotated[int, Field(ge=1, le=60)] | None = None

    @field_validator("bmc")
    @classmethod
    def _address(cls, value: str) -> str:
        return address(value)


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


class BmcSettings(Strict):
    user: str = "root"
    password: Secret | None = None
    ca_file: str = Field("", description="PEM bundle that signed the BMCs' certificates")
    port: Annotated[int, Field(ge=1, le=65535)] = 443


class Provisioning(Strict):
    backend: Literal["maas"]
    url: str
    api_key: Secret
    ca_file: str = ""
    series: str
    pool: str = ""
    zone: str = ""
    allow_plain_http: bool = False

    @field_validator("url")
    @classmethod
    def _url(cls, value: str) -> str:
        if not value.startswith(("https://", "http://")):
            raise ValueError("must be the URL of MAAS, like https://maas.example:5443/MAAS")
        return value.rstrip("/")


class Ssh(Strict):
    user: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")] = "ops"
    private_key: str


class FabricSettings(Strict):
    plan: str
    ibnetdiscover: tuple[str, ...] = ("ibnetdiscover",)
    sminfo: tuple[str, ...] = ()


class Configure(Strict):
    playbook: str = "configure.yml"
    forks: Annotated[int, Field(ge=1, le=500, description="Ansible's processes; more than hosts are of no use")] = 25
    variables: dict[str, Any] = {}


class Batch(Strict):
    """How many nodes at once in each step."""

    discover: Positive = 64
    install: Positive = 32
    configure: Positive = 50
    cable: Positive = 4096
    burnin: Positive = 64


class Deadlines(Strict):
    """Seconds that a step may take for one node."""

    discover: Positive = 180
    install: Positive = 5400
    configure: Positive = 3600
    cable: Positive = 300
    burnin: Positive = 7200


class Limits(Strict):
    attempts: Annotated[int, Field(ge=1, le=10)] = 2
    max_evidence_age_days: Positive = 7


class SiteFile(Strict):
    """`site.yml`."""

    version: Literal[1]
    name: Name
    simulated: bool = False
    nodes: Nodes
    bmc: BmcSettings
    skus: Annotated[tuple[str, ...], Field(min_length=1)]
    provisioning: Provisioning
    ssh: Ssh
    fabric: FabricSettings
    configure: Configure = Configure()
    burnin: Annotated[str, Field(description="the suite that admits to gold")] = "bootstrap"
    batch: Batch = Batch()
    deadlines: Deadlines = Deadlines()
    limits: Limits = Limits()
    pool: Annotated[str, Field(description="file that names the gold nodes")] = "gold.json"
    journal: str = Field("sqlite:///state/journal.db", description="SQLAlchemy URL; relative SQLite paths: this folder")


class RootDiskRule(Strict):
    serial: str = ""
    model: str = ""
    min_gb: Count = 0
    max_gb: Count = 100_000


class SkuFile(Strict):
    """`skus/NAME.yml`."""

    name: str
    manufacturer: str
    model: str
    gpu_count: Count
    gpu_model: str = ""
    hca_count: Count
    hca_model: str = ""
    hca_rate_gbps: Count = 0
    cpu_count: Positive
    memory_gib: Positive
    data_drive_count: Count
    root_disk: RootDiskRule
    limits: str

    @model_validator(mode="after")
    def _consistent(self) -> SkuFile:
        if self.root_disk.min_gb > self.root_disk.max_gb:
            raise ValueError("root_disk: min_gb is above max_gb, no drive can match")
        if self.gpu_count and not self.gpu_model:
            raise ValueError("gpu_model is required where gpu_count is not 0")
        if self.hca_count and not (self.hca_model and self.hca_rate_gbps):
            raise ValueError("hca_model and hca_rate_gbps are required where hca_count is not 0")
        return self


def address(value: str) -> str:
    """An IPv4/IPv6 address, canonical."""
    try:
        return str(ipaddress.ip_address(value.strip()))
    except ValueError:
        raise ValueError("must be an IP address, like 10.20.0.17") from None


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
