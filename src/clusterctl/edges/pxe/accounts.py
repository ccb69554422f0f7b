"""The system accounts of the installer service and of dnsmasq: only root can give them any."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges.disk import disk_explained
from clusterctl.fleet.diagnosis import Diagnosis, ok, warn
from clusterctl.fleet.errors import EnvironmentBrokenError

HTTP_USER, DHCP_USER, SHARED = "clusterctl-pxe", "dnsmasq", "nobody"
NAME = "service_accounts"


@dataclass(frozen=True, slots=True)
class InstallAccount:
    """A user without privileges, and its group."""

    name: str
    user: int
    group: int


def account(wanted: str) -> InstallAccount | None:
    """Return the account of that name, else `nobody`; None where this process may not give one: it is not root."""
    if os.geteuid() != 0:
        return None
    for name in (wanted, SHARED):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        if found.pw_uid != 0 and found.pw_gid != 0:
            return InstallAccount(name, found.pw_uid, found.pw_gid)
    return None


def require_readable(folder: Path, reader: InstallAccount | None) -> None:
    """Raise `EnvironmentBrokenError` where the account may not read all of the boot folder.

    Hidden files are left out.
    """
    if reader is None:
        return
    with disk_explained("cannot be read", folder):
        for path in (folder, *sorted(folder.rglob("[!.]*"))):
            if any(part.startswith(".") for part in path.relative_to(folder).parts) or path.is_symlink():
                continue
            if not _permits(path.stat(), reader, stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0)):
                raise EnvironmentBrokenError(
                    f"user {reader.name}, who serves it, may not read it",
                    where=str(path),
                    remedy=f"chmod -R o+rX {folder}",
                )


def _permits(found: os.stat_result, reader: InstallAccount, wanted: int) -> bool:
    shift = 6 if found.st_uid == reader.user else 3 if found.st_gid == reader.group else 0
    return (found.st_mode >> shift) & wanted == wanted


def diagnose() -> Diagnosis:
    """Report as which users the HTTP service and dnsmasq run on this controller."""
    return judge(account(HTTP_USER), account(DHCP_USER), _own_name())


def judge(http: InstallAccount | None, dhcp: InstallAccount | None, own: str) -> Diagnosis:
    """Judge the two accounts; `own` is the name of the controller's user, the account of both where they have none."""
    if http is None or dhcp is None:
        return warn(
            NAME,
            f"HTTP service and dnsmasq run as {own}, the user of clusterctl, and can read what {own} can read",
            "run clusterctl as root: it gives both an account without privileges",
        )
    names = f"the HTTP service runs as {http.name}, dnsmasq as {dhcp.name}"
    missing = [name for name, found in ((HTTP_USER, http), (DHCP_USER, dhcp)) if found.name != name]
    if missing:
        return warn(NAME, f"{names}: other programs may use that account, too", _remedy(missing))
    return ok(NAME, names)


def _remedy(missing: Sequence[str]) -> str:
    commands = [f"adduser --system --group --no-create-home {name}" for name in missing]
    return f"create an account that nothing else uses: {'; '.join(commands)}"


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"user {os.geteuid()}"
