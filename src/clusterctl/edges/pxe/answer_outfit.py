"""The distributions' own installers: Ubuntu's by autoinstall, Debian's by preseed, from files of the boot folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.edges.pxe.answers import AnswerJob, Series, debian, network_files, ubuntu
from clusterctl.edges.pxe.attempt import BootFiles, Payload
from clusterctl.edges.pxe.desk import for_card
from clusterctl.edges.pxe.settings import Method, PxeSettings
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Mac
from clusterctl.ports import Clock, InstallTarget

SERIES = {"jammy": Series.JAMMY, "noble": Series.NOBLE, "bookworm": Series.BOOKWORM}


@dataclass(frozen=True, slots=True)
class AnswerOutfit:
    """Meets `Outfit`."""

    settings: PxeSettings
    clock: Clock

    def check(self) -> None:
        said = self.settings
        for field, name in (("kernel", said.kernel), ("initrd", said.initrd), ("iso", said.iso)):
            if name and not (said.boot_folder / name).is_file():
                raise UsageError(
                    f"there is no file {name} in {said.boot_folder}",
                    where=f"provisioning.{field}",
                    remedy="copy it there from the distribution (docs/how-to/pxe.md)",
                )

    def boot(self, target: InstallTarget, token: str) -> tuple[BootFiles, Payload]:
        job = self._job(target, token, target.macs[0])
        arguments = debian.kernel_arguments(job) if self._by_preseed else ubuntu.kernel_arguments(job)
        return BootFiles(self.settings.kernel, self.settings.initrd, arguments), Payload()

    def documents(self, target: InstallTarget, token: str) -> Mapping[str, bytes]:
        """For each card, which the installer uses alone; those without a card's name are for the first one."""
        if not target.authorized_key:
            raise UsageError(
                "no public key is given for logging in", where=target.name, remedy="set ssh.private_key in site.yml"
            )
        found = self._documents(self._job(target, token, target.macs[0]))
        for mac in target.macs:
            own = self._documents(self._job(target, token, mac))
            found |= {for_card(name, mac): content for name, content in own.items()}
        return found

    @property
    def _by_preseed(self) -> bool:
        return self.settings.method is Method.PRESEED

    def _documents(self, job: AnswerJob) -> dict[str, bytes]:
        if self._by_preseed:
            return {"preseed.cfg": debian.preseed(job).encode()}
        return {
            "user-data": ubuntu.user_data(job).encode(),
            "meta-data": ubuntu.meta_data(job).encode(),
            "vendor-data": b"",
            "network-config": b"",  # asked for since cloud-init 24; without an answer it tries for seconds
        }

    def _job(self, target: InstallTarget, token: str, mac: Mac) -> AnswerJob:
        said = self.settings
        series = SERIES[said.series]
        return AnswerJob(
            name=target.name,
            server=said.base,
            attempt=f"{said.base}/t/{token}",
            boot_mac=mac,
            user=target.user,
            authorized_key=target.authorized_key,
            series=series,
            told_at=self.clock.now(),
            iso=said.iso,
            console=said.console,
            mirror=said.apt_mirror,
            proxy=said.apt_proxy,
            time_servers=said.time_servers,
            packages=said.packages,
            files=network_files(target.network, series),
        )
