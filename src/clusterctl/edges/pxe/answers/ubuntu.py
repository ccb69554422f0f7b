"""Ubuntu's autoinstall for the live server's installer, subiquity, of 22.04 and 24.04.

Key by key from its reference manual, and from its source where the manual is silent: docs/reference/pxe-answers.md.
"""

from __future__ import annotations

from typing import Any

import yaml

from clusterctl.edges.pxe.answers.job import AnswerJob, ReleaseSeries
from clusterctl.edges.pxe.answers.shells import function, here, put, shell

HEADER = "#cloud-config\n"
UNRESOLVED = "/dev/clusterctl-root-disk"
"""Fits no drive: an install that the early command did not give its root disk writes nothing."""
WORK = "/run/clusterctl"
PROGRAM = f"{WORK}/install.sh"


def kernel_arguments(job: AnswerJob) -> str:
    """Return the arguments of the kernel on iPXE's line, `{bootif}` for the booting card (`01-aa-bb-…`).

    `cloud-config-url` keeps cloud-init from reading the ISO as its own configuration. The seed's URL ends with a slash.
    cloud-init before 24.1 takes a seed over HTTP only as `nocloud-net`, which later ones call deprecated.
    """
    source = "nocloud-net" if job.series is ReleaseSeries.JAMMY else "nocloud"
    return (
        f"ip=dhcp BOOTIF={{bootif}} url={job.iso_url} cloud-config-url=/dev/null "
        f"autoinstall ds={source};s={job.attempt}/ console=tty0 console={job.console}"
    )


def meta_data(job: AnswerJob) -> str:
    """Return the meta-data: cloud-init refuses a seed without it."""
    return _yaml({"instance-id": f"clusterctl-{job.name}", "local-hostname": job.name})


def user_data(job: AnswerJob) -> str:
    return HEADER + _yaml({"autoinstall": autoinstall(job)})


def autoinstall(job: AnswerJob) -> dict[str, Any]:
    """Return the value of `autoinstall`, as subiquity validates it."""
    return {
        "version": 1,
        "locale": "en_US.UTF-8",
        "keyboard": {"layout": "us"},
        "timezone": "Etc/UTC",
        "refresh-installer": {"update": False},
        "source": {"search_drivers": False},
        "reporting": {"clusterctl": {"type": "webhook", "endpoint": f"{job.attempt}/webhook", "level": "INFO"}},
        "network": _network(job),
        "apt": _apt(job),
        "storage": _storage(),
        "ssh": {"install-server": True, "allow-pw": False},
        "user-data": _first_boot(job),
        **({"packages": list(job.packages)} if job.packages else {}),
        "updates": "security",
        "early-commands": [_writes_program(job), ["sh", PROGRAM, "accept"]],
        "late-commands": [["sh", PROGRAM, "finish"]],
        "error-commands": [["sh", PROGRAM, "failed"]],
        "shutdown": "reboot",
    }


def _network(job: AnswerJob) -> dict[str, Any]:
    """Return the network during the install: the port that booted and no other. The site's own network, applied at
    once, could cut it off from the service.
    """
    port = {"match": {"macaddress": job.boot_mac}, "dhcp4": True, "dhcp-identifier": "mac"}
    return {"version": 2, "ethernets": {"boot": port}}


def _apt(job: AnswerJob) -> dict[str, Any]:
    """Return apt's settings: the site's mirror and cache, security updates too.

    `http_proxy` here and not the key `proxy`, which would also be subiquity's own: its reports would go to the cache.
    22.04's first installers know no `mirror-selection`.
    """
    apt: dict[str, Any] = {"geoip": False, "fallback": "offline-install"}
    if job.proxy:
        apt["http_proxy"] = job.proxy
    if job.mirror:
        mirrors = [{"arches": ["default"], "uri": job.mirror}]
        candidates = {"mirror-selection": {"primary": [{"uri": job.mirror}]}}
        apt |= {"primary": mirrors} if job.series is ReleaseSeries.JAMMY else candidates
        apt["security"] = mirrors
    return apt


def _storage() -> dict[str, Any]:
    """Return GPT, an ESP and one ext4 root on the one drive; guided layouts would take the largest. UEFI only."""
    ours = {"preserve": False}
    return {
        "swap": {"size": 0},
        "grub": {"reorder_uefi": False},
        "config": [
            {"type": "disk", "id": "disk", "match": {"path": UNRESOLVED}, "ptable": "gpt"}
            | {"wipe": "superblock-recursive", **ours},
            {"type": "partition", "id": "esp", "device": "disk", "number": 1, "size": "512M", "flag": "boot"}
            | {"wipe": "superblock", "grub_device": True, **ours},
            {"type": "format", "id": "esp-fs", "volume": "esp", "fstype": "fat32", **ours},
            {
                "type": "partition",
                "id": "root",
                "device": "disk",
                "number": 2,
                "size": -1,
                "wipe": "superblock",
                **ours,
            },
            {"type": "format", "id": "root-fs", "volume": "root", "fstype": "ext4", **ours},
            {"type": "mount", "id": "root-mount", "device": "root-fs", "path": "/"},
            {"type": "mount", "id": "esp-mount", "device": "esp-fs", "path": "/boot/efi"},
        ],
    }


def _first_boot(job: AnswerJob) -> dict[str, Any]:
    """Return the user-data of the first boot. By default cloud-init makes new SSH host keys, which are not pinned."""
    ntp = {"ntp": {"enabled": True, "ntp_client": "systemd-timesyncd", "servers": list(job.time_servers)}}
    return {
        "hostname": job.name,
        "manage_etc_hosts": True,
        "users": [_user(job)],
        "disable_root": job.user != "root",
        "ssh_pwauth": False,
        "ssh_deletekeys": False,
        **(ntp if job.time_servers else {}),
    }


def _user(job: AnswerJob) -> dict[str, Any]:
    if job.user == "root":
        return {"name": "root", "ssh_authorized_keys": [job.authorized_key]}
    return {
        "name": job.user,
        "shell": "/bin/bash",
        "lock_passwd": True,
        "sudo": "ALL=(ALL) NOPASSWD:ALL",
        "ssh_authorized_keys": [job.authorized_key],
    }


def program(job: AnswerJob) -> str:
    """Return the shell program that the commands run."""
    settings = {"T": job.attempt, "WORK": WORK, "UNRESOLVED": UNRESOLVED}
    return shell(settings, [_lay_files(job)], "talk", "accept", "ubuntu")


def _lay_files(job: AnswerJob) -> str:
    """Return the lines that replace the installer's network by the host's own, where the site has one for it."""
    if not job.files:
        return function("lay_files")
    return function("lay_files", 'rm -f "$TARGET"/etc/netplan/*.yaml', *(put(*file) for file in job.files.items()))


def _writes_program(job: AnswerJob) -> str:
    return f"umask 077 && mkdir -p {WORK} && cat > {PROGRAM} {here(program(job))}\n"


class _Readable(yaml.SafeDumper):
    """Several lines as several lines."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Readable.add_representer(str, _text)


def _yaml(document: dict[str, Any]) -> str:
    return yaml.dump(document, Dumper=_Readable, sort_keys=False, width=1000)
