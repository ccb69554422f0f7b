"""What UFM reports, for the watch of the fabric: its events by the REST API, and its log as a file."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path

from clusterctl.edges.site import Site
from clusterctl.edges.site.secrets import resolve
from clusterctl.edges.ufm import site_ufm
from clusterctl.edges.ufm.api import time_zone
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.fabric.alarms import AlarmList, ManagedLink, ManagedSystem
from clusterctl.fleet.fabric.manager_jobs import ManagerJob
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.fleet.node import Guid
from clusterctl.formats.ufm.event_log import parse_event_log
from clusterctl.ports import AlarmReader, Clock, Deadline
from clusterctl.ports.fabric import SwitchImage
from clusterctl.site.ufm import SwitchSoftwareSettings, UfmSettings

MAX_LOG = 64 << 20
"""Bytes of the end of the log that are read."""


@dataclass(frozen=True, slots=True)
class UfmEvents:
    """Implements `ports.AlarmReader` by the REST API. Reads the login at each reading: it may have been renewed."""

    site: Site
    settings: UfmSettings
    clock: Clock

    def alarms(self, deadline: Deadline) -> Observed[AlarmList]:
        """Return the events that UFM still has."""
        with closing(site_ufm(self.site, self.settings, self.clock)) as ufm:
            return ufm.events(deadline.within(self.settings.seconds))


@dataclass(frozen=True, slots=True)
class UfmLinks:
    """Implements `ports.LinkModel` by the REST API."""

    site: Site
    settings: UfmSettings
    clock: Clock

    def links(self, deadline: Deadline) -> Observed[tuple[ManagedLink, ...]]:
        """Return the links that UFM has."""
        with closing(site_ufm(self.site, self.settings, self.clock)) as ufm:
            return ufm.links(deadline.within(self.settings.seconds))


@dataclass(frozen=True, slots=True)
class UfmSystems:
    """Implements `ports.SystemReader` by the REST API."""

    site: Site
    settings: UfmSettings
    clock: Clock

    def systems(self, deadline: Deadline) -> Observed[tuple[ManagedSystem, ...]]:
        """Return the hosts and switches that UFM has."""
        with closing(site_ufm(self.site, self.settings, self.clock)) as ufm:
            return ufm.systems(deadline.within(self.settings.seconds))


@dataclass(frozen=True, slots=True)
class UfmJobs:
    """Implements `ports.JobReader` by the REST API."""

    site: Site
    settings: UfmSettings
    clock: Clock

    def jobs(self, deadline: Deadline, parent: str = "") -> Observed[tuple[ManagerJob, ...]]:
        """Return all jobs that UFM has, or the parts of one."""
        with closing(site_ufm(self.site, self.settings, self.clock)) as ufm:
            return ufm.jobs(deadline.within(self.settings.seconds), parent)

    def job(self, id_: str, deadline: Deadline) -> Observed[ManagerJob]:
        """Return one job."""
        with closing(site_ufm(self.site, self.settings, self.clock)) as ufm:
            return ufm.job(id_, deadline.within(self.settings.seconds))


@dataclass(frozen=True, slots=True)
class UfmUpdater:
    """Implements `ports.SwitchUpdater` by the REST API."""

    site: Site
    settings: UfmSettings
    clock: Clock

    def upgrade(self, switch: Guid, image: SwitchImage, deadline: Deadline) -> str:
        """Let the switch load and install the image; return the job's number."""
        with closing(site_ufm(self.site, self.settings, self.clock)) as ufm:
            return ufm.upgrade(switch, image, deadline.within(self.settings.seconds))

    def reboot(self, switch: Guid, deadline: Deadline) -> str:
        """Reboot the switch; return the job's number."""
        with closing(site_ufm(self.site, self.settings, self.clock)) as ufm:
            return ufm.reboot(switch, deadline.within(self.settings.seconds))


def switch_image(site: Site, settings: SwitchSoftwareSettings, version: str) -> SwitchImage:
    """Return the image of a version; reads the password of its server now. Raise `UsageError` for an unknown one."""
    where = site.where("fabric", "switch_software", "images")
    if version not in settings.images:
        known = ", ".join(settings.images)
        raise UsageError(f"the site has no image of {version}", where=where, remedy=f"add it; it has {known}")
    return SwitchImage(
        protocol=settings.protocol,
        server=settings.server,
        user=settings.user,
        password=resolve(settings.password, site.folder, site.where("fabric", "switch_software", "password")),
        path=settings.path,
        name=settings.images[version],
    )


@dataclass(frozen=True, slots=True)
class UfmLog:
    """Implements `ports.AlarmReader` by UFM's event log, of which the end is read."""

    file: Path
    zone: tzinfo
    clock: Clock
    origin: Origin

    def alarms(self, deadline: Deadline) -> Observed[AlarmList]:
        """Return the entries. Raise `EdgeError` where the file cannot be read, or holds lines and no entry."""
        deadline.check("reading UFM's event log")
        at = self.clock.now()
        try:
            with self.file.open("rb") as stream:
                size = stream.seek(0, 2)
                stream.seek(max(0, size - MAX_LOG))
                content = stream.read(MAX_LOG)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            remedy = "correct fabric.ufm.event_log, or its mode"
            raise EdgeError(f"UFM's event log cannot be read: {reason}", where=str(self.file), remedy=remedy) from error
        log = parse_event_log(content.decode(errors="replace"), self.zone)
        if log.skipped and not log.alarms:
            remedy = "name UFM's event.log as fabric.ufm.event_log"
            raise EdgeError("there is no entry of UFM's event log in it", where=str(self.file), remedy=remedy)
        return Observed(AlarmList(log.alarms), (Evidence("event.log", str(self.file), at, self.origin, content),))


def alarm_readers(site: Site, clock: Clock) -> dict[str, AlarmReader]:
    """Return the readers of a site by their names: `ufm`, `ufm_log`; none where the site has no UFM."""
    settings = site.settings.fabric.ufm
    if settings is None:
        return {}
    readers: dict[str, AlarmReader] = {"ufm": UfmEvents(site, settings, clock)}
    if settings.event_log:
        zone = time_zone(settings.time_zone, site.where("fabric", "ufm", "time_zone"))
        readers["ufm_log"] = UfmLog(Path(site.path(settings.event_log)), zone, clock, site.origin)
    return readers
