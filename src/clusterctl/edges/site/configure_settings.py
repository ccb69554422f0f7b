"""What may stand in `site.yml` under `configure`: which roles nodes get, their variables, and how they are applied."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from clusterctl.edges.site.fields import FileName, Secret, Strict, Words, shaped
from clusterctl.edges.site.transport import TransportName
from clusterctl.edges.site.waves import ConfigureWaves

DEFAULT_ROLES = ("base", "ssh_access", "nvidia_driver", "node_exporter")
"""What a site gets that names none: what clusterctl configured before sites could choose."""

RoleName = Annotated[str, AfterValidator(shaped(r"[a-z][a-z0-9_]{0,60}", "a role's name, such as nvidia_driver"))]


def _once(value: tuple[str, ...]) -> tuple[str, ...]:
    twice = next((name for name in value if value.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"names {twice} twice: keep one")
    return value


RoleNames = Annotated[tuple[RoleName, ...], AfterValidator(_once)]


class NodeGroup(Strict):
    """Some of the nodes (by each selector that is given), and what is different for them."""

    nodes: Annotated[tuple[Words, ...], Field(description="names or patterns")] = ()
    racks: tuple[Words, ...] = ()
    skus: tuple[FileName, ...] = ()
    roles: Annotated[RoleNames, Field(description="besides those of all")] = ()
    without: Annotated[RoleNames, Field(description="roles of all that they do not get")] = ()
    variables: Annotated[dict[str, Any], Field(description="go before those of all")] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _says_something(self) -> NodeGroup:
        if not (self.nodes or self.racks or self.skus):
            raise ValueError("say which nodes: nodes, racks or skus")
        if not (self.roles or self.without or self.variables):
            raise ValueError("say what they get: roles, without or variables")
        both = sorted({*self.roles} & {*self.without})
        if both:
            raise ValueError(f"{both[0]} stands in roles and in without: keep one")
        return self


class Configure(Strict):
    playbook: FileName = "configure.yml"
    forks: Annotated[
        int, Field(ge=1, le=500, strict=True, description="Ansible's processes; more than hosts are of no use")
    ] = 25
    transport: TransportName = "auto"
    roles: Annotated[RoleNames, Field(description="what every node gets; in any order")] = DEFAULT_ROLES
    variables: dict[str, Any] = Field(default_factory=dict, description="the roles' variables")
    secrets: dict[str, Secret] = Field(
        default_factory=dict, description="variables whose values are secret, by reference"
    )
    groups: tuple[NodeGroup, ...] = ()
    reboots: Annotated[bool, Field(strict=True, description="whether nodes whose roles need it are rebooted")] = True
    waves: ConfigureWaves = ConfigureWaves()

    @model_validator(mode="after")
    def _each_once(self) -> Configure:
        for variables in (self.variables, *(group.variables for group in self.groups)):
            twice = sorted(variables.keys() & self.secrets.keys())
            if twice:
                raise ValueError(f"{twice[0]} stands in variables and in secrets: keep the secret")
        return self
