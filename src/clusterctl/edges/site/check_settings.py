"""`checks` of a site file: what the burn-in holds the hosts' software to."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from clusterctl.edges.site.fields import Strict, shaped
from clusterctl.edges.site.provisioning import MaasProvisioning, PxeProvisioning
from clusterctl_burnin.host_requirements import HostRequirements

RELEASES = frozenset({"bookworm", "jammy", "noble"})
"""What the roles configure. An installer may call an image of its own something else, which no host says of itself."""

Release = Annotated[str, AfterValidator(shaped(r"[a-z]{3,30}", "a release by its code name, such as jammy or noble"))]
Kernel = Annotated[
    str, AfterValidator(shaped(r"\d+\.\d+[\w.+~-]*", "a kernel's release as uname -r says it, like 5.15.0-91-generic"))
]
_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?"
DnsName = Annotated[
    str, AfterValidator(shaped(rf"(?=.{{1,253}}$)({_LABEL}\.)+{_LABEL}\.?", "a whole name, like mirror.example"))
]
Image = Annotated[
    str, AfterValidator(shaped(r"\w[\w.:/@-]{0,299}", "a container image, like nvcr.io/nvidia/cuda:12.4.1-base"))
]
ContainerName = Annotated[str, AfterValidator(shaped(r"[A-Za-z0-9][\w.-]{0,99}", "a container's name"))]


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"names {twice} twice: keep one")
    return names


class CheckSettings(Strict):
    release: Annotated[Release | None, Field(description="default: what the installer is told, where it is one")] = None
    kernel: Kernel | None = None
    names: Annotated[tuple[DnsName, ...], AfterValidator(_once), Field(description="name servers must know them")] = ()
    gpu_image: Annotated[Image | None, Field(description="there on every host; in it all GPUs must be seen")] = None
    containers: Annotated[tuple[ContainerName, ...], AfterValidator(_once), Field(description="must run")] = ()

    def requirements(self, installers: tuple[MaasProvisioning | PxeProvisioning, ...]) -> HostRequirements:
        """What travels to the hosts."""
        return HostRequirements(
            release=self.release or _installed(installers),
            kernel=self.kernel or "",
            names=self.names,
            gpu_image=self.gpu_image or "",
            containers=self.containers,
        )


def _installed(installers: tuple[MaasProvisioning | PxeProvisioning, ...]) -> str:
    """The release that all of them install (`jammy`, `ubuntu/jammy`); empty where they differ or name another thing."""
    series = {(installer.series or "").rpartition("/")[2] for installer in installers}
    only = series.pop() if len(series) == 1 else ""
    return only if only in RELEASES else ""
