"""`checks` and `suite` of a site: what the burn-in requires of the hosts' software, and changes to its suite."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from clusterctl.site.fields import RELEASE, Secret, code_name, section, shaped, unique
from clusterctl.site.provisioning import ExistingProvisioning, MaasProvisioning, PxeProvisioning
from clusterctl.site.urls import object_url


def _absolute(value: str) -> str:
    return shaped(r"/[^\x00-\x1f]{1,400}", "an absolute path")(value) if value else value


Rounds = Annotated[int, Field(ge=1, le=64, strict=True)]
PairMeetings = Annotated[int, Field(ge=0, le=10, strict=True)]
PairSeconds = Annotated[int, Field(ge=1, le=86_400, strict=True)]
GroupIterations = Annotated[int, Field(ge=1, le=10_000_000, strict=True)]
NodeSeconds = Annotated[int, Field(ge=1, le=86_400, strict=True)]


Backend = MaasProvisioning | PxeProvisioning | ExistingProvisioning
RELEASES = frozenset({"bookworm", "jammy", "noble"})
"""The releases that the roles support. An installer may use another name for an own image; no host reports that."""

Release = Annotated[
    str,
    BeforeValidator(code_name),
    AfterValidator(shaped(r"[a-z]{3,30}", RELEASE)),
]
Kernel = Annotated[
    str, AfterValidator(shaped(r"\d+\.\d+[\w.+~-]*", "a kernel's release as in uname -r, like 5.15.0-91-generic"))
]
_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?"
DnsName = Annotated[
    str, AfterValidator(shaped(rf"(?=.{{1,253}}$)({_LABEL}\.)+{_LABEL}\.?", "a whole name, like mirror.example"))
]
Image = Annotated[
    str, AfterValidator(shaped(r"\w[\w.:/@-]{0,299}", "a container image, like nvcr.io/nvidia/cuda:12.4.1-base"))
]
ContainerName = Annotated[str, AfterValidator(shaped(r"[A-Za-z0-9][\w.-]{0,99}", "a container's name"))]
Ofed = Annotated[
    str,
    AfterValidator(shaped(r"inbox|\d+\.\d+-\d[\d.]{0,30}", "a release of OFED, like 24.10-2.1.8.0, or inbox")),
]
LocalUrl = Annotated[
    str,
    AfterValidator(
        shaped(r"http://(127\.0\.0\.1|localhost|\[::1\]):\d{1,5}/[\w./-]{0,100}", "like http://127.0.0.1:9400/metrics")
    ),
]


@section
class CheckSettings:
    """What the software of every host must be."""

    release: Annotated[Release | None, Field(description="default: the release that the installer installs")] = None
    kernel: Kernel | None = None
    names: Annotated[tuple[DnsName, ...], AfterValidator(unique), Field(description="name servers must know them")] = ()
    gpu_image: Annotated[Image | None, Field(description="hosts have it; it sees all GPUs")] = None
    containers: Annotated[tuple[ContainerName, ...], AfterValidator(unique), Field(description="must run")] = ()
    ofed: Annotated[Ofed | None, Field(description="the RDMA drivers that hosts must have")] = None
    dcgm_exporter: Annotated[LocalUrl | None, Field(description="its metrics, as a host reaches them")] = None

    def expected_release(self, installers: tuple[Backend, ...]) -> str:
        """Return the required release: `release`, else the one that all installers install; else empty."""
        return self.release or _installed(installers)


def _installed(installers: tuple[Backend, ...]) -> str:
    """Return the release that all of them install (`jammy`, `ubuntu/jammy`); empty if they differ or it is unknown."""
    series = {_series(installer).rpartition("/")[2] for installer in installers}
    only = series.pop() if len(series) == 1 else ""
    return only if only in RELEASES else ""


def _series(installer: Backend) -> str:
    return "" if isinstance(installer, ExistingProvisioning) else installer.series or ""


@section
class StorageSettings:
    """What the load `storage_read` reads on every node: an object by its URL, or a file by its path."""

    url: Annotated[str, AfterValidator(object_url), Field(description="an object of a store, over HTTP")] = ""
    path: Annotated[str, AfterValidator(_absolute), Field(description="a file on a network file system")] = ""
    gbps: Annotated[float, Field(gt=0, le=10_000, description="the least rate of a node, while all nodes read")]
    access_key: Annotated[Secret | None, Field(description="of the store; without it the object is public")] = None
    secret_key: Secret | None = None
    region: Annotated[str, AfterValidator(shaped(r"[a-z0-9-]{1,40}", "a region, like us-east-1"))] = "us-east-1"

    def __post_init__(self) -> None:
        if bool(self.url) == bool(self.path):
            raise ValueError("give either url or path")
        if (self.access_key is None) != (self.secret_key is None):
            raise ValueError("access_key and secret_key belong together")
        if self.path and self.access_key is not None:
            raise ValueError("a path needs no access_key")


@section
class SuiteChanges:
    """Changes of the site to the suite that `burnin` names."""

    pair_rounds: Rounds | None = None
    group_rounds: Rounds | None = None
    pair_meetings: PairMeetings | None = None
    pair_seconds: PairSeconds | None = None
    group_iterations: GroupIterations | None = None
    hang_seconds: PairSeconds | None = None
    node_seconds: dict[str, NodeSeconds] | None = None
