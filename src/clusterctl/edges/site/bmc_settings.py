"""What `site.yml` says of BMCs: who logs in to which, and whom to believe there."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from clusterctl.edges.site.fields import Name, Secret, Strict
from clusterctl.fleet.bmc.accounts import Characters, PasswordRule

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class BmcLogin(Strict):
    """Credentials for some of the BMCs: of a vendor, in networks, or both."""

    name: Name
    vendor: str = ""
    networks: tuple[str, ...] = ()
    user: str = "root"
    password: Secret

    @field_validator("networks")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            try:
                ipaddress.ip_network(text)
            except ValueError:
                raise ValueError("must be a network, like 10.20.4.0/22") from None
        return value

    @model_validator(mode="after")
    def _some(self) -> BmcLogin:
        if not (self.vendor or self.networks):
            raise ValueError("say where it applies, by vendor or networks; what applies everywhere is bmc.password")
        return self

    def applies(self, host: str, vendor: str) -> bool:
        """`vendor` is empty where it is not known: logins of a vendor do not apply then."""
        address = ipaddress.ip_address(host)
        inside = not self.networks or any(address in ipaddress.ip_network(text) for text in self.networks)
        return inside and (not self.vendor or self.vendor.lower() == vendor.lower())


class RotationSettings(Strict):
    """The site's rule for the passwords that clusterctl gives to BMCs, one of its own to each machine.

    `user`: whose password is changed; empty: the one that clusterctl logs in as. `when: discover` changes what a BMC
    wants changed before it does anything, without being asked.
    """

    user: str = ""
    length: Annotated[int, Field(ge=12, le=64, strict=True)] = 16
    characters: Literal["letters_and_digits", "with_signs"] = "letters_and_digits"
    when: Literal["command", "discover"] = "command"

    @property
    def rule(self) -> PasswordRule:
        return PasswordRule(self.length, Characters(self.characters))


class BmcSettings(Strict):
    """`first_use: pin` believes a BMC that nobody vouches for once, and pins its certificate."""

    user: str = "root"
    password: Secret | None = None
    logins: tuple[BmcLogin, ...] = ()
    factory: str = Field("", description="the vendor's list of factory logins by serial or BMC MAC (CSV, mode 0600)")
    ca_file: str = Field("", description="PEM bundle that signed the BMCs' certificates")
    rotation: RotationSettings | None = Field(None, description="the rule by which passwords are changed")
    first_use: Literal["refuse", "pin"] = "refuse"
    scheme: Literal["https", "http"] = "https"
    allow_plain_http: Annotated[bool, Field(strict=True)] = False
    port: Annotated[int, Field(ge=1, le=65535, strict=True)] | None = Field(None, description="443; 80 over plain http")

    @model_validator(mode="after")
    def _one_way_to_trust(self) -> BmcSettings:
        if self.scheme == "http" and not self.allow_plain_http:
            raise ValueError(
                "plain http shows passwords to the whole network: use https, or set allow_plain_http: true"
            )
        if self.first_use == "pin" and self.ca_file:
            raise ValueError("give ca_file or first_use: pin, not both: an authority leaves nothing to first use")
        return self

    @field_validator("logins")
    @classmethod
    def _each_once(cls, value: tuple[BmcLogin, ...]) -> tuple[BmcLogin, ...]:
        names = [login.name for login in value]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two are named {twice}: the sheet could not say which is meant")
        return value

    @property
    def reached_at(self) -> int:
        """The port."""
        return self.port or (80 if self.scheme == "http" else 443)
