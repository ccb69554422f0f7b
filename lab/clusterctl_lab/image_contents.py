"""What the hosts' shared root file system contains, and how it is made lean: no host keys, no passwords, few units."""

from __future__ import annotations

from pathlib import Path

RECIPE_VERSION = 5
"""Raise it when `customise` changes: the cached image is then built again."""

PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "openssh-server", "sudo", "less"),
    *("iproute2", "iputils-ping", "procps"),
    *("apt", "gpgv", "ca-certificates", "python3", "python3-apt"),
    "python3-yaml",  # as on servers, where cloud-init needs it
    *("openmpi-bin", "python3-mpi4py"),
    "libfaketime",
    "iperf3",  # for ethernet_pairs: real traffic between hosts
)

EXCLUDED_PATHS = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")

MASKED_UNITS = (
    # What a namespace has no hardware or no right for.
    *("systemd-udevd.service", "systemd-udevd-control.socket", "systemd-udevd-kernel.socket"),
    *("systemd-udev-trigger.service", "systemd-udev-settle.service", "systemd-modules-load.service"),
    *("sys-kernel-config.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-fs-fuse-connections.mount"),
    *("dev-hugepages.mount", "proc-sys-fs-binfmt_misc.automount", "systemd-binfmt.service"),
    *("systemd-remount-fs.service", "systemd-random-seed.service", "systemd-pstore.service"),
    # It has no console.
    *("getty.target", "getty@tty1.service", "console-getty.service"),
    *("systemd-ask-password-console.path", "systemd-ask-password-wall.path"),
    # What costs processor time that a hundred hosts share.
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer"),
    *("e2scrub_reap.service", "fstrim.timer", "motd-news.timer", "systemd-tmpfiles-clean.timer"),
    *("systemd-hwdb-update.service", "ldconfig.service", "systemd-update-utmp.service"),
    *("systemd-update-utmp-runlevel.service", "systemd-journal-flush.service", "systemd-firstboot.service"),
    *("systemd-sysusers.service", "systemd-tmpfiles-setup-dev.service", "systemd-machine-id-commit.service"),
    *("systemd-pcrphase.service", "systemd-pcrphase-sysinit.service", "systemd-repart.service"),
    *("systemd-journal-catalog-update.service", "systemd-update-done.service", "systemd-user-sessions.service"),
)

STARTED_BY_DBUS = ("systemd-logind.service",)
"""Not at boot, where a hundred hosts would each keep 8 MB for it, but for its first caller: `shutdown -r` needs it."""

KEPT_GENERATORS = ("systemd-fstab-generator",)
"""Each boot runs every unit generator; a host without disks, consoles and kernel command line needs this one."""

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
"""The machine's devices that a host may use: no disk, no memory, no kernel log, no real terminal."""

DEVICE_TEMPLATE = Path("usr/lib/clusterctl-lab-devices")
"""Copied onto /dev at each boot: empty files to bind the machine's devices on, and the usual links."""

_DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}

_FAKETIME = "FAKETIME_DONT_FAKE_MONOTONIC=1\nFAKETIME_CACHE_DURATION=1000000"
"""How a faked clock is to behave (libfaketime's README): time-outs stay true, and its file is read once a process,
because sshd's sandbox kills a child that opens a file.
"""

_FILES = {
    "etc/ssh/sshd_config.d/10-lab.conf": "PasswordAuthentication no\nKbdInteractiveAuthentication no\nUseDNS no\n",
    "etc/systemd/journald.conf.d/lab.conf": "[Journal]\nStorage=volatile\nRuntimeMaxUse=8M\nReadKMsg=no\nAudit=no\n",
    "etc/apt/sources.list": "",
    "etc/machine-id": "",
    "etc/hostname": "unnamed\n",
    "etc/resolv.conf": "",
    "etc/tmpfiles.d/systemd-nologin.conf": "# no logins are held back while it boots\n",
    "etc/environment": f"{_FAKETIME}\n",
    "etc/systemd/system.conf.d/lab.conf": f"[Manager]\nDefaultEnvironment={_FAKETIME.replace(chr(10), ' ')}\n",
}

_LINKS = {"etc/ld.so.preload": "/run/clusterctl-lab/ld.so.preload", "etc/faketimerc": "/run/clusterctl-lab/faketimerc"}
"""Where a fault of the clock lays its files: nothing is there otherwise, and nothing survives a reboot."""

_PER_HOST = ("etc/ssh/ssh_host_*", "var/lib/dbus/machine-id", "etc/apt/sources.list.d/*", "etc/apt/apt.conf.d/99mm*")


def customise(root: Path) -> None:
    """Turn a fresh installation in `root` into the image of a lab host; must run as root."""
    for pattern in _PER_HOST:
        for path in root.glob(pattern):
            path.unlink()
    for name, content in _FILES.items():
        path = root / name
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(content)
    for name, target in _LINKS.items():
        (root / name).unlink(missing_ok=True)
        (root / name).symlink_to(target)
    for unit in MASKED_UNITS:
        _mask(root / "etc/systemd/system" / unit)
    for unit in STARTED_BY_DBUS:
        (root / "usr/lib/systemd/system/multi-user.target.wants" / unit).unlink(missing_ok=True)
    for generator in (root / "usr/lib/systemd/system-generators").iterdir():
        if generator.name not in KEPT_GENERATORS:
            _mask(root / "etc/systemd/system-generators" / generator.name)
    _make_device_template(root / DEVICE_TEMPLATE)


def _mask(link: Path) -> None:
    """A unit or generator that is a link to /dev/null is passed over."""
    link.parent.mkdir(mode=0o755, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to("/dev/null")


def _make_device_template(template: Path) -> None:
    for directory in ("pts", "shm"):
        (template / directory).mkdir(mode=0o755, parents=True, exist_ok=True)
    for name in DEVICES:
        (template / name).touch()
    for name, target in _DEVICE_LINKS.items():
        (template / name).symlink_to(target)
