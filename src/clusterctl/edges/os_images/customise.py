"""What makes a fresh installation an image: nothing of one host in it, and the settings that every host shares."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

_SMALL_MODULES = (
    *("virtio_pci", "virtio_net", "virtio_blk", "virtio_scsi", "nvme", "ahci", "sd_mod"),
    *("ext4", "crc32c_generic", "vfat", "nls_cp437", "nls_ascii"),
)

OF_NO_USE_IN_EMULATION = tuple(
    f"/lib/modules/*/kernel/{path}/*"
    for path in (
        *("sound", "net/bluetooth", "net/mac80211", "net/wireless", "fs/ocfs2", "fs/gfs2", "fs/btrfs", "fs/smb"),
        *("drivers/gpu", "drivers/media", "drivers/staging", "drivers/iio", "drivers/comedi", "drivers/hwmon"),
        *("drivers/usb", "drivers/net/wireless", "drivers/net/usb", "drivers/net/wwan", "drivers/net/can"),
        *("drivers/net/ethernet/[a-hj-z]*", "drivers/infiniband/hw", "drivers/target", "drivers/platform"),
        *("drivers/mtd", "drivers/bluetooth", "drivers/isdn", "drivers/video", "drivers/hid"),
    )
)
"""Drivers of hardware that no virtual machine has: half of the kernel's modules, left out of the small image."""

_PER_HOST = (
    *("etc/ssh/ssh_host_*", "var/lib/dbus/machine-id", "var/lib/systemd/random-seed", "etc/apt/apt.conf.d/99mm*"),
    *("etc/dpkg/dpkg.cfg.d/99mm*", "etc/apt/sources.list.d/*"),
    *("var/cache/apt/*.bin", "var/log/*.log", "var/log/apt/*", "boot/*.old"),
)
_REPLACED = ("etc/resolv.conf", "etc/hostname", "etc/machine-id")
_EMPTIED = ("var/lib/apt/lists", "var/cache/apt/archives", "tmp", "var/tmp", "run", "boot/efi", "boot/loader")

_WAIT_FOR_ANY = "[Service]\nExecStart=\nExecStart=/lib/systemd/systemd-networkd-wait-online --any --timeout=30\n"
"""A server has ports without a cable: waiting for all of them would hold the boot for two minutes."""

_FILES = {
    "etc/machine-id": "",
    "etc/hostname": "unnamed\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
    "etc/ssh/sshd_config.d/20-clusterctl-image.conf": (
        "HostKey /etc/ssh/ssh_host_ed25519_key\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nUseDNS no\n"
    ),
    "etc/systemd/network/90-clusterctl-dhcp.network": (
        "# A port without another configuration: an address by DHCP, and no unit waits for it.\n"
        "[Match]\nType=ether\nKind=!*\n\n[Link]\nRequiredForOnline=no\n\n[Network]\nDHCP=yes\n"
    ),
    "etc/systemd/system/systemd-networkd-wait-online.service.d/clusterctl.conf": _WAIT_FOR_ANY,
}

_GENERAL_OPTIONS = "console=tty0 console=ttyS0,115200n8\n"
_SMALL_OPTIONS = "quiet mitigations=off console=ttyS0,115200n8\n"
"""The small image runs on emulated processors, which have nothing to guard against and pay for guards."""

_ENABLED = {
    "systemd-networkd.service": ("multi-user.target.wants",),
    "systemd-networkd-wait-online.service": ("network-online.target.wants",),
    "systemd-resolved.service": ("multi-user.target.wants",),
    "systemd-timesyncd.service": ("sysinit.target.wants",),
}


def write_seed(seed: Path, *, small: bool) -> None:
    """Write files that must be there before the packages: what the first initramfs is made of."""
    conf = seed / "etc/initramfs-tools/conf.d"
    conf.mkdir(parents=True)
    modules = "list" if small else "most"
    (conf / "clusterctl").write_text(f"MODULES={modules}\nFSTYPE=ext4\nRESUME=none\nCOMPRESS=zstd\n")
    if small:
        listed = seed / "usr/share/initramfs-tools/modules.d"
        listed.mkdir(parents=True)
        (listed / "clusterctl").write_text("\n".join(_SMALL_MODULES) + "\n")


def customise(root: Path, sources: Iterable[str], *, small: bool) -> None:
    """Turn the installation in `root` into an image; `sources` are the apt entries that its hosts begin with."""
    for pattern in _PER_HOST:
        for path in root.glob(pattern):
            path.unlink()
    for name in _REPLACED:
        (root / name).unlink(missing_ok=True)
    for name in _EMPTIED:
        _empty(root / name)
    for name, content in _FILES.items():
        _write(root / name, content)
    _write(root / "etc/kernel/cmdline", _SMALL_OPTIONS if small else _GENERAL_OPTIONS)
    _write(root / "etc/apt/sources.list", "".join(f"{line}\n" for line in sources))
    (root / "etc/resolv.conf").symlink_to("../run/systemd/resolve/stub-resolv.conf")
    for unit, targets in _ENABLED.items():
        for target in targets:
            _enable(root, unit, target)


def _empty(folder: Path) -> None:
    if folder.is_dir():
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(content)


def _enable(root: Path, unit: str, target: str) -> None:
    for units in ("usr/lib/systemd/system", "lib/systemd/system"):
        if (root / units / unit).exists():
            link = root / "etc/systemd/system" / target / unit
            link.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(f"/{units}/{unit}")
            return
