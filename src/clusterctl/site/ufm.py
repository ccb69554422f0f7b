"""`fabric.ufm` of a site: the UFM that manages its InfiniBand fabric; `fabric.watch`: what is done about its links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from clusterctl.site.fields import FileName, Fingerprint, Flag, Positive, Secret, Words, section, shaped
from clusterctl.site.network import Ip
from clusterctl.site.urls import plain_url


def _ufm_url(value: str) -> str:
    return plain_url(value, "must be the URL of UFM, like https://ufm.example")


ZoneName = Annotated[str, AfterValidator(shaped(r"[A-Za-z][A-Za-z0-9_+/-]{0,60}", "a time zone such as Europe/Berlin"))]


@section
class WatchSettings:
    """What `fabric watch` does. Without `act: true` it reads, judges and reports, and changes no port."""

    act: Annotated[Flag, Field(description="disable bad links, and enable repaired ones")] = False
    seconds: Annotated[Positive, Field(ge=10, description="from the begin of one pass to the next")] = 300
    burn_s: Annotated[int, Field(ge=0, le=3600, description="that free hosts load a repaired link; 0: not at all")] = (
        300
    )
    adaptive: Annotated[
        Flag, Field(description="switches may route adaptively: a low rate in that load is no fault")
    ] = True


ImageVersion = Annotated[
    str, AfterValidator(shaped(r"[0-9][0-9A-Za-z.]{0,39}", "a version as UFM shows it, like 3.12.2002, in quotes"))
]
ImageFolder = Annotated[str, AfterValidator(shaped(r"/[\w./ +-]{0,199}", "a folder of the server, like /images"))]


@section
class SwitchSoftwareSettings:
    """Where managed switches load new software from, ordered by UFM. Without `act: true` nothing is updated."""

    act: Annotated[Flag, Field(description="update switches")] = False
    server: Ip
    protocol: Literal["scp", "ftp"] = "scp"
    user: Annotated[str, Field(min_length=1, max_length=200)]
    password: Secret
    path: ImageFolder
    images: Annotated[Mapping[ImageVersion, FileName], Field(min_length=1, description="file of each version")]


@section
class UfmSettings:
    """Where UFM is, and its login: `token`, or `user` and `password`. UFM writes the local time of its host."""

    url: Annotated[str, AfterValidator(_ufm_url)]
    token: Annotated[Secret | None, Field(description="an access token of UFM")] = None
    user: Annotated[str, Field(max_length=200)] = ""
    password: Secret | None = None
    ca_file: str = ""
    tls_fingerprint: Fingerprint = ""
    allow_plain_http: Flag = False
    time_zone: Annotated[ZoneName, Field(description="of UFM's host")] = "UTC"
    event_log: Annotated[str, Field(description="UFM's event.log, where this controller can read it")] = ""
    seconds: Annotated[Positive, Field(description="that one reading of UFM may take")] = 60
    active: Annotated[
        tuple[Words, ...], Field(description="argv that exits with 0 where UFM runs, with 3 where not")
    ] = ()
    restart: Annotated[tuple[Words, ...], Field(description="argv that restarts the active UFM")] = ()

    def __post_init__(self) -> None:
        if (self.token is None) == (self.password is None):
            raise ValueError("give token, or user and password")
        if (self.password is None) != (not self.user):
            raise ValueError("user and password belong together")
        if self.ca_file and self.tls_fingerprint:
            raise ValueError("give ca_file or tls_fingerprint, not both")
        if bool(self.active) is not bool(self.restart):
            raise ValueError("active and restart belong together")
        if self.url.startswith("http://") and not self.allow_plain_http:
            raise ValueError("plain http shows the login to the whole network: use https, or allow_plain_http: true")
