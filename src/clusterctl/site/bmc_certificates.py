"""`bmc.certificates` of a site: who signs the certificates of BMCs, for how long, and in which name."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from clusterctl.formats.identifiers import is_host_name
from clusterctl.site.fields import Secret, Words, section, shaped


def _domain(value: str) -> str:
    bare = value.strip().lower().strip(".")
    if not all(map(is_host_name, bare.split("."))):
        raise ValueError("must be a domain, like bmc.cluster.example")
    return bare


Country = Annotated[str, AfterValidator(shaped(r"[A-Z]{2}", "a country's code of two letters, such as DE"))]


@section
class SubjectSettings:
    """The subject of the BMCs' certificates. BMCs refuse a request without one of these (recorded: Supermicro)."""

    organization: Words
    unit: Words
    city: Words
    state: Words
    country: Country


@section
class CertificateSettings:
    """How `bmc certificates renew` renews: signed by `ca` and `key`, or by the program `signer`."""

    ca: Annotated[str, Field(description="PEM file of the authority's certificate")]
    key: Annotated[Secret | None, Field(description="the authority's private key, PEM without a passphrase")] = None
    signer: Annotated[
        tuple[Words, ...],
        Field(description="a program that reads the request (PEM) and prints the certificate, instead of key"),
    ] = ()
    subject: SubjectSettings
    domain: Annotated[
        str, AfterValidator(_domain), Field(description="NODE.DOMAIN is in each certificate, and the address")
    ]
    days: Annotated[int, Field(ge=1, le=3650, strict=True)] = 397
    renew_days: Annotated[int, Field(ge=1, le=3650, strict=True, description="renewed when so many are left")] = 60

    def __post_init__(self) -> None:
        if (self.key is None) == (not self.signer):
            raise ValueError("give key or signer, and not both")
        if self.renew_days >= self.days:
            raise ValueError("renew_days must be less than days: else each certificate is due at once")
