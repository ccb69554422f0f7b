"""`configure` and `waves` of a site: the roles of nodes, their variables, and the order of the work."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from clusterctl.site.fields import Count, FileName, Flag, Positive, Secret, Words, section, shaped, unique

TransportName = Annotated[
    Literal["auto", "ssh", "host"],
    Field(description="auto: a host plays by itself where it can; ssh: never; host: a host that cannot fails"),
]


@section
class WaveSettings:
    """How many machines are installed together, and when to stop."""

    canary: Count = 1
    at_once: Annotated[
        Positive | None,
        Field(description="machines at a time, installs over all runs; default: the step's value of batch"),
    ] = None
    per_rack: Annotated[Count, Field(description="0: no limit but at_once")] = 4
    stop_percent: Annotated[int, Field(ge=0, le=100, strict=True)] = 20
    of_at_least: Positive = 5
    patience_s: Annotated[Positive, Field(description="after this time a canary gets a second one")] = 1800


@section
class ConfigureWaves(WaveSettings):
    """How many machines are configured together. Racks set no limit: only the package mirror is shared."""

    per_rack: Annotated[Count, Field(description="0: no limit but at_once")] = 0


DEFAULT_ROLES = ("base", "ssh_access", "nvidia_driver", "node_exporter")
"""The roles of a site that names none."""

RoleName = Annotated[str, AfterValidator(shaped(r"[a-z][a-z0-9_]{0,60}", "a role's name, such as nvidia_driver"))]


RoleNames = Annotated[tuple[RoleName, ...], AfterValidator(unique)]


@section
class NodeGroup:
    """Nodes that match every given selector, and what is different for them."""

    nodes: Annotated[tuple[Words, ...], Field(description="names or patterns")] = ()
    racks: tuple[Words, ...] = ()
    skus: tuple[FileName, ...] = ()
    roles: Annotated[RoleNames, Field(description="in addition to those of all nodes")] = ()
    without: Annotated[RoleNames, Field(description="roles of all nodes that these do not get")] = ()
    variables: Annotated[dict[str, Any], Field(description="override those of all nodes")] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.nodes or self.racks or self.skus):
            raise ValueError("give its nodes: nodes, racks or skus")
        if not (self.roles or self.without or self.variables):
            raise ValueError("give its content: roles, without or variables")
        both = sorted({*self.roles} & {*self.without})
        if both:
            raise ValueError(f"{both[0]} stands in roles and in without: keep one")


@section
class ConfigureSettings:
    """The playbook, the roles and their variables, and how they are applied."""

    playbook: FileName = "configure.yml"
    forks: Annotated[
        int, Field(ge=1, le=500, strict=True, description="Ansible's processes; more than there are hosts have no use")
    ] = 25
    transport: TransportName = "auto"
    roles: Annotated[RoleNames, Field(description="what every node gets; in any order")] = DEFAULT_ROLES
    variables: Annotated[dict[str, Any], Field(description="the roles' variables")] = field(default_factory=dict)
    secrets: Annotated[dict[str, Secret], Field(description="secret variables, by reference")] = field(
        default_factory=dict
    )
    groups: tuple[NodeGroup, ...] = ()
    reboots: Annotated[Flag, Field(description="reboot nodes with a role that needs it")] = True
    waves: ConfigureWaves = ConfigureWaves()

    def __post_init__(self) -> None:
        for variables in (self.variables, *(group.variables for group in self.groups)):
            twice = sorted(variables.keys() & self.secrets.keys())
            if twice:
                raise ValueError(f"{twice[0]} stands in variables and in secrets: keep the secret")
