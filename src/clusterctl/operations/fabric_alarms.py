"""What fabric managers report: their new events go into the journal. Imported only where one is read."""

from __future__ import annotations

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.ufm.readers import UfmJobs, UfmLinks, UfmSystems, UfmUpdater, alarm_readers, switch_image
from clusterctl.edges.ufm.service import UfmService
from clusterctl.fleet.errors import UsageError
from clusterctl.operations.compose import subnet_manager_pace
from clusterctl.operations.context import SiteContext
from clusterctl.operations.switch_upgrade import SwitchServices
from clusterctl.operations.ufm_restart import UfmRestart
from clusterctl.ports import AlarmReader, JobReader, LinkModel, SystemReader


def site_alarm_readers(context: SiteContext) -> dict[str, AlarmReader]:
    """Return the site's readers of alarms by name; none where the site has no fabric manager."""
    return alarm_readers(context.site, CLOCK)


def site_link_model(context: SiteContext) -> LinkModel | None:
    """Return the reader of the links that the site's fabric manager has; None where it has none."""
    settings = context.site.settings.fabric.ufm
    return UfmLinks(context.site, settings, CLOCK) if settings is not None else None


def site_systems(context: SiteContext) -> SystemReader | None:
    """Return the reader of the switches that the site's fabric manager has; None where it has none."""
    settings = context.site.settings.fabric.ufm
    return UfmSystems(context.site, settings, CLOCK) if settings is not None else None


def site_switch_services(context: SiteContext, version: str) -> SwitchServices:
    """Return what updates the site's switches to a version. Raise `UsageError` where the site does not name how."""
    ufm, software = context.site.settings.fabric.ufm, context.site.settings.fabric.switch_software
    if ufm is None or software is None:
        where = context.site.where("fabric", "ufm" if ufm is None else "switch_software")
        remedy = "name fabric.ufm and fabric.switch_software (docs/how-to/fabric-firmware.md)"
        raise UsageError("the site does not name how switches get software", where=where, remedy=remedy)
    return SwitchServices(
        systems=UfmSystems(context.site, ufm, CLOCK),
        jobs=UfmJobs(context.site, ufm, CLOCK),
        updater=UfmUpdater(context.site, ufm, CLOCK),
        image=switch_image(context.site, software, version),
        pace=subnet_manager_pace(context),
    )


def site_ufm_restart(context: SiteContext) -> UfmRestart:
    """Return the restart of the site's UFM. Raise `UsageError` where the site does not name how."""
    settings, links = context.site.settings.fabric.ufm, site_link_model(context)
    if settings is None or links is None or not settings.restart:
        where, remedy = context.site.where("fabric", "ufm"), "name active and restart (docs/how-to/ufm.md)"
        raise UsageError("the site does not name how UFM is restarted", where=where, remedy=remedy)
    return UfmRestart(context, links, UfmService(settings.active, settings.restart))


def site_jobs(context: SiteContext) -> JobReader:
    """Return the reader of the jobs of the site's UFM. Raise `UsageError` where the site has none."""
    settings = context.site.settings.fabric.ufm
    if settings is None:
        where, remedy = context.site.where("fabric", "ufm"), "name it (docs/how-to/ufm.md)"
        raise UsageError("the site has no UFM", where=where, remedy=remedy)
    return UfmJobs(context.site, settings, CLOCK)
