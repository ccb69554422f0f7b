"""cloud-init's user-data as files over the written image: the deployer's images have no cloud-init. Pure.

It supports the same user-data as the lab's hosts in namespaces (`clusterctl_lab.hosts.cloud_config`). In addition the
host calls MAAS at its first boot, as cloud-init does when it fetches its user-data.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl.fleet.errors import UsageError
from clusterctl_lab import markers
from clusterctl_lab.hosts.cloud_config import CloudConfig, PlacedFile, User

KEYS = "/etc/ssh/authorized_keys.d"
HOST_KEY = "/etc/ssh/ssh_host_ed25519_key"
UNIT = "clusterctl-lab-booted.service"
WANTS = "/etc/systemd/system/multi-user.target.wants"
BOOT_REPORT = "/etc/clusterctl-lab/booted.py"
ROOTS = "root:root"

_BOOT_REPORT = """\
# Reports to the lab's MAAS that this machine runs its OS. 404 means that MAAS no longer waits for it: no error.
import contextlib
import urllib.error
import urllib.request

with contextlib.suppress(urllib.error.HTTPError):
    urllib.request.urlopen("{url}", data=b"", timeout=30)
"""
_UNIT = f"""\
[Unit]
Description=Report to the lab's MAAS that this machine has booted
Wants=network-online.target
After=network-online.target ssh.service
ConditionPathExists={BOOT_REPORT}

[Service]
Type=oneshot
ExecStart=/usr/bin/python3 {BOOT_REPORT}
ExecStartPost=/usr/bin/rm -f {BOOT_REPORT}
Restart=on-failure
RestartSec=5
"""


@dataclass(frozen=True, slots=True)
class HostSetup:
    """The data that MAAS itself assigns to a host: its name where the user-data has none, the card with its address,
    the disk of the image, and the URL that it calls at its first boot (a secret during the installation).
    """

    name: str
    mac: str
    disk_serial: str
    booted_url: str


def overlay(config: CloudConfig, setup: HostSetup) -> bytes:
    """Return the tar, with all files owned by root. Raises `UsageError` for a file with another owner."""
    found = {file.path: file for file in (*_own(config, setup), *config.files)}
    for file in found.values():
        if file.owner not in (ROOTS, "root"):
            raise UsageError(
                f"{file.path} cannot be {file.owner}'s before its first boot",
                where="user-data write_files",
                remedy="leave its owner to root",
            )
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(_folders(found)):
            tar.addfile(_entry(path, tarfile.DIRTYPE, 0o755))
        for path, file in sorted(found.items()):
            entry = _entry(path, tarfile.REGTYPE, file.mode)
            entry.size = len(file.content)
            tar.addfile(entry, io.BytesIO(file.content))
        for path, to in sorted(_links().items()):
            entry = _entry(path, tarfile.SYMTYPE, 0o777)
            entry.linkname = to
            tar.addfile(entry)
    return stream.getvalue()


def _own(config: CloudConfig, setup: HostSetup) -> Iterator[PlacedFile]:
    name = config.hostname or setup.name
    yield _text("/etc/hostname", f"{name}\n")
    yield _text("/etc/hosts", f"127.0.0.1 localhost\n127.0.1.1 {name}\n::1 localhost ip6-localhost ip6-loopback\n")
    yield _text("/etc/systemd/network/20-maas.network", _network(setup.mac))
    if config.host_key_private:
        yield _text(HOST_KEY, f"{config.host_key_private.rstrip()}\n", 0o600)
        yield _text(f"{HOST_KEY}.pub", f"{config.host_key_public.rstrip()}\n")
    yield from _login(config.users)
    yield _text(markers.HOST_FILE, markers.HOST_FILE_TEXT)
    yield _text("/etc/clusterctl-lab/root-disk", f"{setup.disk_serial}\n")
    yield _text(BOOT_REPORT, _BOOT_REPORT.format(url=setup.booted_url), 0o600)
    yield _text(f"/etc/systemd/system/{UNIT}", _UNIT)


def _login(users: tuple[User, ...]) -> Iterator[PlacedFile]:
    """Return the login files: keys only, in a folder owned by root, so that no user has to exist when the tar is
    unpacked.
    """
    root = any(user.name == "root" and user.keys for user in users)
    yield _text(
        "/etc/ssh/sshd_config.d/10-maas.conf",
        "PasswordAuthentication no\n"
        "KbdInteractiveAuthentication no\n"
        f"PermitRootLogin {'prohibit-password' if root else 'no'}\n"
        f"AuthorizedKeysFile .ssh/authorized_keys {KEYS}/%u\n",
    )
    for user in users:
        yield _text(f"{KEYS}/{user.name}", "".join(f"{key.strip()}\n" for key in user.keys))
    others = [user for user in users if user.name != "root"]
    if others:
        yield from _accounts(others)


def _accounts(others: list[User]) -> Iterator[PlacedFile]:
    accounts = "".join(f'u {user.name} - "{user.name}" /home/{user.name} {user.shell}\n' for user in others)
    homes = "".join(f"d /home/{user.name} 0700 {user.name} {user.name}\n" for user in others)
    sudoers = "".join(f"{user.name} ALL=(ALL) NOPASSWD:ALL\n" for user in others if user.sudo)
    yield _text("/etc/sysusers.d/maas.conf", accounts)
    yield _text("/etc/tmpfiles.d/maas.conf", homes)
    yield _text("/etc/sudoers.d/90-maas", sudoers, 0o440)


def _network(mac: str) -> str:
    """The address that DHCP has reserved for the card; the MAC is the client's id, as the firmware's."""
    return f"[Match]\nPermanentMACAddress={mac}\n\n[Network]\nDHCP=ipv4\n\n[DHCPv4]\nClientIdentifier=mac\n"


def _links() -> dict[str, str]:
    return {f"{WANTS}/{UNIT}": f"/etc/systemd/system/{UNIT}"}


def _text(path: str, text: str, mode: int = 0o644) -> PlacedFile:
    return PlacedFile(path, text.encode(), mode)


def _folders(files: dict[str, PlacedFile]) -> set[str]:
    """Return the folders that an image may lack; `/etc` exists and keeps its mode."""
    parts = [path.strip("/").split("/") for path in (*files, *_links())]
    return {"/".join(words[:depth]) for words in parts for depth in range(2, len(words))}


def _entry(path: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path.lstrip("/"))
    entry.type = kind
    entry.mode = mode
    entry.uname = entry.gname = "root"
    return entry
