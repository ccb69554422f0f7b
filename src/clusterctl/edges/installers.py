"""Several installers as one: each machine's own, by the site file's entry for its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.fleet.errors import EdgeError, InstallerUnavailableError
from clusterctl.fleet.finding import Observed
from clusterctl.ports import BmcAddress, Deadline, Eraser, Installer, InstallStatus, InstallTarget
from clusterctl.ports.accounts import LoginUpdate, PowerLogins, PowerTarget


class NoInstaller:
    """Meets `Installer` for machines that are installed already: nothing is ever done to their disks."""

    def prepare(self, target: InstallTarget, _deadline: Deadline) -> Observed[InstallStatus]:
        raise self._refusal(target)

    start = release = prepare

    def power_login(self, _target: InstallTarget, _deadline: Deadline) -> BmcAddress | None:
        """Return None: it switches no machine."""
        return None

    def observe(self, targets: Sequence[InstallTarget], _deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        raise self._refusal(targets[0])

    def _refusal(self, target: InstallTarget) -> EdgeError:
        return EdgeError(
            "clusterctl installs nothing on it: its provisioning backend is existing",
            where=target.name,
            remedy=f"clusterctl adopt {target.name} takes it in as it is",
        )


@dataclass(frozen=True, slots=True)
class Backend:
    """One installer, and what else it does: `eraser` None where it erases nothing, `logins` where it has none."""

    installer: Installer
    eraser: Eraser | None = None
    logins: PowerLogins | None = None


class Installers:
    """Meets `Installer`, `Eraser` and `PowerLogins`. `backend_of` returns a node's installer or raises `UsageError`."""

    def __init__(self, backend_of: Callable[[str], Backend]) -> None:
        self._of = backend_of

    def prepare(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        return self._of(target.name).installer.prepare(target, deadline)

    def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        return self._of(target.name).installer.start(target, deadline)

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        """Look at each installer, at its own machines. The machines of one that is away are left out.

        Raises `InstallerUnavailableError` where all are away.
        """
        shares: dict[int, tuple[Installer, list[InstallTarget]]] = {}
        for target in targets:
            installer = self._of(target.name).installer
            shares.setdefault(id(installer), (installer, []))[1].append(target)
        found: dict[str, Observed[InstallStatus]] = {}
        away: list[InstallerUnavailableError] = []
        for installer, share in shares.values():
            try:
                found |= installer.observe(share, deadline)
            except InstallerUnavailableError as error:
                away.append(error)
        if away and not found:
            raise away[0]
        return found

    def release(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        return self._of(target.name).installer.release(target, deadline)

    def power_login(self, target: InstallTarget, deadline: Deadline) -> BmcAddress | None:
        return self._of(target.name).installer.power_login(target, deadline)

    def erases_any(self, name: str) -> bool:
        eraser = self._of(name).eraser
        return eraser is not None and eraser.erases_any(name)

    def erase(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        eraser = self._of(target.name).eraser
        if eraser is None:
            raise EdgeError(
                "its provisioning backend erases no drives",
                where=target.name,
                remedy="erase its drives by hand, then retire it without --wipe",
            )
        return eraser.erase(target, deadline)

    def give(self, target: PowerTarget, deadline: Deadline) -> Observed[LoginUpdate]:
        """Return no update: an installer that does not log in to BMCs knows no machine there."""
        logins = self._of(target.name).logins
        return logins.give(target, deadline) if logins is not None else Observed(LoginUpdate.UNKNOWN)
