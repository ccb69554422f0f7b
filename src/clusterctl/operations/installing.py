"""The site's installers: MAAS, our own PXE, or both, composed as `provisioning` says."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from clusterctl.edges.installers import Backend
from clusterctl.edges.maas import MaasInstaller, MaasPowerLogins
from clusterctl.edges.site import Site
from clusterctl.fleet.errors import UsageError
from clusterctl.operations.context import CLOCK
from clusterctl.operations.maas_settings import maas_settings
from clusterctl.ports import Bmcs


def backend_of(site: Site, node: str) -> str:
    """Who installs the machine. Raises `UsageError` where the site says nobody does."""
    for item in site.settings.provisioning:
        if item.serves(node):
            return item.backend
    raise UsageError(
        f"nobody installs {node}",
        where=site.where("provisioning"),
        remedy="leave nodes out of the last backend, or add a pattern that fits",
    )


def backends(site: Site, bmcs: Bmcs, closing: contextlib.ExitStack) -> Mapping[str, Backend]:
    """By their names in the site file; `closing` ends what they serve."""
    found: dict[str, Backend] = {}
    if site.settings.maas is not None:
        settings = maas_settings(site)
        maas = MaasInstaller(settings, CLOCK)
        found["maas"] = Backend(maas, maas, MaasPowerLogins(settings, CLOCK))
    if site.settings.pxe is not None:
        from clusterctl.operations.installers import pxe_installer

        found["pxe"] = Backend(pxe_installer(site, bmcs, closing))
    return found
