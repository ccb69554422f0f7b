"""What cloud-init does at a host's first boot, done at install time: name, users, keys, files."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from clusterctl.fleet.errors import UsageError
from clusterctl_lab import markers
from clusterctl_lab.hosts.accounts import AccountFiles
from clusterctl_lab.hosts.cloud_config import CloudConfig, PlacedFile, User
from clusterctl_lab.hosts.disk import Writer
from clusterctl_lab.machine import Machine

log = logging.getLogger(__name__)


def apply(
    config: CloudConfig, machine: Machine, disk_serial: str, neighbours: Mapping[str, str], writer: Writer
) -> None:
    """Write everything that makes the shared image this host. `neighbours`: name → address, for /etc/hosts."""
    for key in config.ignored:
        log.warning("%s: the lab's hosts do not honour `%s` of the user-data", machine.name, key)
    _identity(config.hostname or machine.name, machine, disk_serial, neighbours, writer)
    _host_key(config, writer)
    files = _users(config.users, writer)
    for placed in config.files:
        _place(placed, files, writer)


def _identity(hostname: str, machine: Machine, disk_serial: str, neighbours: Mapping[str, str], writer: Writer) -> None:
    writer.write("/etc/hostname", f"{hostname}\n".encode())
    writer.write("/etc/machine-id", f"{uuid.uuid4().hex}\n".encode(), 0o444)
    names = {machine.name: machine.address, **neighbours, hostname: machine.address}
    hosts = ["127.0.0.1 localhost", "::1 localhost", *(f"{address} {name}" for name, address in names.items())]
    writer.write("/etc/hosts", ("\n".join(hosts) + "\n").encode())
    writer.write(markers.HOST_FILE, markers.HOST_FILE_TEXT.encode())
    writer.write("/etc/clusterctl-lab/root-disk", f"{disk_serial}\n".encode())


def _host_key(config: CloudConfig, writer: Writer) -> None:
    private, public = config.host_key_private, config.host_key_public
    if not private:
        private, public = _generate_key()
    writer.write("/etc/ssh/ssh_host_ed25519_key", (private.rstrip("\n") + "\n").encode(), 0o600)
    writer.write("/etc/ssh/ssh_host_ed25519_key.pub", (public.rstrip("\n") + "\n").encode())


def _generate_key() -> tuple[str, str]:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return private.decode(), public.decode()


def _users(users: tuple[User, ...], writer: Writer) -> AccountFiles:
    files = AccountFiles(*((writer.image / "etc" / name).read_text() for name in ("passwd", "shadow", "group")))
    for user in users:
        files, account = files.with_account(user.name, user.shell)
        writer.directory(account.home, 0o755 if account.uid else 0o700, account.uid, account.gid)
        ssh = f"{account.home}/.ssh"
        writer.directory(ssh, 0o700, account.uid, account.gid)
        keys = "".join(f"{key.strip()}\n" for key in user.keys).encode()
        writer.write(f"{ssh}/authorized_keys", keys, 0o600, account.uid, account.gid)
    shadow_group = files.group_id("shadow") or 0
    writer.write("/etc/passwd", files.passwd.encode())
    writer.write("/etc/group", files.group.encode())
    writer.write("/etc/shadow", files.shadow.encode(), 0o640, 0, shadow_group)
    sudoers = "".join(f"{user.name} ALL=(ALL) NOPASSWD:ALL\n" for user in users if user.sudo)
    if sudoers:
        writer.write("/etc/sudoers.d/90-cloud-init-users", sudoers.encode(), 0o440)
    return files


def _place(placed: PlacedFile, files: AccountFiles, writer: Writer) -> None:
    user, _, group = placed.owner.partition(":")
    account, gid = files.find(user), files.group_id(group or user)
    if account is None or gid is None:
        raise UsageError(
            f"owner `{placed.owner}` of {placed.path} is unknown", where="user-data", remedy="Name a user of the host."
        )
    writer.write(placed.path, placed.content, placed.mode, account.uid, gid)
