"""Before the first run: write a site folder, examine the controller and the MAAS host. None of it acts on a machine."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import yaml

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.doctor import NoSiteError, examine
from clusterctl.edges.maas.api import MaasApi
from clusterctl.edges.maas.host import HostFacts, SiteNeeds, check_host
from clusterctl.edges.maas.settings import MaasSettings
from clusterctl.edges.site import Site, load_site
from clusterctl.edges.site.roles import write_site
from clusterctl.fleet.diagnosis import Diagnosis, Health
from clusterctl.fleet.errors import ClusterctlError, EnvironmentBrokenError, UsageError
from clusterctl.operations import night_policy
from clusterctl.operations.operation import Control
from clusterctl.operations.site_adapters import maas_settings
from clusterctl.operations.site_facts import known_bmcs
from clusterctl.operations.trust import diagnosis
from clusterctl.ports import Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorResult:
    """The diagnoses of the controller and, where there is one, of its site."""

    found: tuple[Diagnosis, ...]

    @property
    def exit_code(self) -> int:
        """0, or 3 where something is broken."""
        return EnvironmentBrokenError.exit_code if _broken(self.found) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MaasCheckRequest:
    """`subnet`: the provisioning network in CIDR notation, where MAAS has others."""

    subnet: str = ""
    deadline_s: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MaasCheckResult:
    """The diagnoses of the MAAS host. `reached`: it answered and accepted the key.

    from_node  a node tried it: what it could not try is not ready, either
    """

    found: tuple[Diagnosis, ...]
    reached: bool
    from_node: bool = False

    @property
    def exit_code(self) -> int:
        """0: ready; 1: something is broken, or could not be tried; 3: MAAS is not reached, or rejects the key."""
        if not self.reached:
            return EnvironmentBrokenError.exit_code
        untried = self.from_node and any(item.health is Health.NOT_MEASURED for item in self.found)
        return int(untried or _broken(self.found))


def init(folder: Path) -> tuple[Path, ...]:
    """Write a commented site into `folder` (new or empty), called like the folder; return the files."""
    try:
        return write_site(folder, _site_name(folder))
    except OSError as error:
        remedy = "name a directory that you may write to"
        raise UsageError(f"the site cannot be written: {error.strerror}", where=str(folder), remedy=remedy) from None


def _site_name(folder: Path) -> str:
    """Return the folder's name in the characters that a site's name may have, in quotes where YAML needs them.

    Letters lose their marks: `ümlaut` is `umlaut`.
    """
    plain = unicodedata.normalize("NFKD", folder.resolve().name.casefold())
    letters = "".join(sign for sign in plain if not unicodedata.combining(sign))
    name = re.sub(r"[^a-z0-9]+", "-", letters)[:63].strip("-") or "site"
    return name if isinstance(yaml.safe_load(name), str) else f'"{name}"'


def doctor(folder: Path) -> DoctorResult:
    """Examine the controller, and the site in `folder`; changes nothing."""
    site = _site(folder)
    if isinstance(site, ClusterctlError):
        return DoctorResult(found=tuple(examine(site, None, CLOCK)))
    pins = replace(known_bmcs(site), learn=False)
    more = [(night_policy.NAME, partial(night_policy.diagnosis, site)), ("trust", partial(diagnosis, site))]
    return DoctorResult(found=tuple(examine(site, pins, CLOCK, more)))


def check_maas(folder: Path, request: MaasCheckRequest, control: Control) -> MaasCheckResult:
    """Return what the MAAS host lacks to install the site; changes nothing."""
    site = load_site(folder)
    settings = maas_settings(site)
    deadline = Deadline.after(request.deadline_s, control.cancelled)
    report = check_host(HostFacts(MaasApi(settings, CLOCK), deadline, site_needs(site, settings, request.subnet)))
    return MaasCheckResult(found=tuple(report.found), reached=report.reached)


def site_needs(site: Site, settings: MaasSettings, subnet: str) -> SiteNeeds:
    """Return what the site needs of its MAAS. `subnet`: the provisioning network; empty: every one with DHCP."""
    return SiteNeeds(
        series=settings.series,
        architecture=settings.architecture,
        nodes=len(site.nodes),
        at_once=site.settings.batch.install,
        limits=settings.limits,
        subnet=subnet,
        names=tuple(node.name for node in site.nodes),
        pool=settings.pool,
        move_from_pools=settings.move_from_pools,
    )


def _site(folder: Path) -> Site | ClusterctlError:
    """Return the site, or why there is none; no site in the current directory is no error."""
    if folder == Path() and not (folder / "site.yml").exists():
        return NoSiteError("none here", remedy="name one with --site DIR, and the rest is looked at as well")
    try:
        return load_site(folder)
    except ClusterctlError as error:
        return error


def _broken(found: tuple[Diagnosis, ...]) -> bool:
    return any(item.health is Health.BROKEN for item in found)
