"""The files that turn a written image into this host: name, network, login. One reproducible tar. Pure.

systemd-sysusers and -tmpfiles create the user at each boot, from files that are independent of the image's own users.
Keys lie in a folder of root, so that no user has to exist when the tar is unpacked over the image.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clusterctl.fleet.errors import UsageError

UNITS = "usr/lib/systemd/system"
KEYS = "etc/ssh/authorized_keys.d"


@dataclass(frozen=True, slots=True)
class OverlayHost:
    """The host that the overlay is for; `network` holds its network files, text by path."""

    name: str
    user: str
    authorized_key: str
    network: Mapping[str, str]
    nameservers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    time_servers: tuple[str, ...] = ()
    apt_proxy: str = ""


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    text: str
    mode: int = 0o644


def overlay(host: OverlayHost) -> bytes:
    """Return the tar: owned by root, without times. Raises `UsageError` where there is no key for a login."""
    if not host.authorized_key:
        raise UsageError(
            "no public key is given for logging in", where=host.name, remedy="set ssh.private_key in site.yml"
        )
    found = {file.path: file for file in _files(host)}
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(_folders(found)):
            tar.addfile(_entry(path, tarfile.DIRTYPE, 0o755))
        for file in (found[path] for path in sorted(found)):
            content = file.text.encode()
            entry = _entry(file.path, tarfile.REGTYPE, file.mode)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        for path, to in sorted(_links().items()):
            entry = _entry(path, tarfile.SYMTYPE, 0o777)
            entry.linkname = to
            tar.addfile(entry)
    return stream.getvalue()


def _files(host: OverlayHost) -> Iterator[_File]:
    yield _File("etc/hostname", f"{host.name}\n")
    yield _File("etc/hosts", _hosts(host.name))
    yield from (_File(path.lstrip("/"), text) for path, text in host.network.items())
    yield from _login(host)
    if host.nameservers:
        search = f"search {' '.join(host.search)}\n" if host.search else ""
        yield _File("etc/resolv.conf", search + "".join(f"nameserver {server}\n" for server in host.nameservers))
    if host.time_servers:
        yield _File("etc/systemd/timesyncd.conf.d/10-clusterctl.conf", f"[Time]\nNTP={' '.join(host.time_servers)}\n")
    if host.apt_proxy:
        yield _File("etc/apt/apt.conf.d/90clusterctl-proxy", f'Acquire::http::Proxy "{host.apt_proxy}";\n')


def _login(host: OverlayHost) -> Iterator[_File]:
    """Yield the files for the login: by key, never by password; the user may become root."""
    user = host.user
    root = "prohibit-password" if user == "root" else "no"
    yield _File(f"{KEYS}/{user}", f"{host.authorized_key.strip()}\n")
    yield _File(
        "etc/ssh/sshd_config.d/10-clusterctl.conf",
        "PasswordAuthentication no\n"
        "KbdInteractiveAuthentication no\n"
        f"PermitRootLogin {root}\n"
        f"AuthorizedKeysFile .ssh/authorized_keys /{KEYS}/%u\n",
    )
    if user == "root":
        return
    yield _File("etc/sysusers.d/clusterctl.conf", f'u {user} - "clusterctl" /home/{user} /bin/bash\n')
    yield _File("etc/systemd/system/systemd-sysusers.service.d/10-clusterctl.conf", "[Unit]\nConditionNeedsUpdate=\n")
    yield _File("etc/tmpfiles.d/clusterctl.conf", f"d /home/{user} 0700 {user} {user}\n")
    yield _File("etc/sudoers.d/90-clusterctl", f"{user} ALL=(ALL) NOPASSWD:ALL\n", 0o440)


def _hosts(name: str) -> str:
    return f"127.0.0.1 localhost\n127.0.1.1 {name}\n::1 localhost ip6-localhost ip6-loopback\n"


def _links() -> Mapping[str, str]:
    """Return the links that start the network service at boot."""
    return {"etc/systemd/system/multi-user.target.wants/systemd-networkd.service": f"/{UNITS}/systemd-networkd.service"}


def _folders(files: Mapping[str, _File]) -> set[str]:
    """Return the folders that an image may lack. It has `etc`, which keeps its mode."""
    paths = (*files, *_links())
    return {"/".join(parts[:depth]) for path in paths for parts in [path.split("/")] for depth in range(2, len(parts))}


def _entry(path: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path)
    entry.type = kind
    entry.mode = mode
    entry.uname = entry.gname = "root"
    return entry
