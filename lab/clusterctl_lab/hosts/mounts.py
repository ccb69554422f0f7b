"""What a host sees as its file system, as two mount tables in fstab's form: `mount --all` does each in one process.

The root is an overlay: the host's own disk above the stand-in tools above the shared image. `/proc/sys` is a copy that
the host may write to without effect on the machine, except what belongs to its own namespaces (`net`, the host name).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.image_contents import DEVICES

READ_ONLY = ("proc/sysrq-trigger", "proc/irq", "proc/bus", "proc/fs", "proc/acpi", "proc/mtrr")
HIDDEN = ("proc/kcore", "proc/kmsg", "proc/kallsyms", "proc/swaps")
OWN_SYSCTLS = ("net", "kernel/hostname", "kernel/domainname", "kernel/random/uuid")
DMI = "sys/devices/virtual/dmi/id"
CPU_HIERARCHY = "run/cgroup/cpu"


@dataclass(frozen=True, slots=True)
class HostPaths:
    """Where a host's pieces lie on the machine. `run` is gone at power-off, `disk` stays."""

    run: Path
    disk: Path
    lowers: tuple[Path, ...]
    sysctls: Path

    @property
    def root(self) -> Path:
        return self.run / "root"

    @property
    def sysctl_upper(self) -> Path:
        return self.run / "sysctl/upper"

    @property
    def dmi(self) -> Path:
        return self.run / "dmi"

    @property
    def skeleton(self) -> Path:
        return self.run / "skeleton.tar"


def base_table(paths: HostPaths) -> str:
    """The root and the kernel's file systems; afterwards /dev is filled from its template."""
    lowers = ":".join(_overlay_path(path) for path in paths.lowers)
    upper, work = _overlay_path(paths.disk / "upper"), _overlay_path(paths.disk / "work")
    root = paths.root
    return _table(
        ("overlay", root, "overlay", f"lowerdir={lowers},upperdir={upper},workdir={work},volatile"),
        ("proc", root / "proc", "proc", "nosuid,nodev,noexec"),
        ("sysfs", root / "sys", "sysfs", "ro,nosuid,nodev,noexec"),
        ("tmpfs", root / "dev", "tmpfs", "mode=755,size=1m,nosuid,noexec"),
        ("tmpfs", root / "run", "tmpfs", "mode=755,nosuid,nodev"),
        ("tmpfs", root / "tmp", "tmpfs", "mode=1777,nosuid,nodev"),
    )


def inner_table(paths: HostPaths, exists: Callable[[Path], bool], cpu: Path | None = None) -> str:
    """Return the mounts inside those; `exists` checks which of the kernel's files this machine has.

    `cpu`: the cpu controller's own hierarchy, where the machine has one: the host can read its quota there.
    """
    root = paths.root
    sysctl = f"lowerdir={paths.sysctls},upperdir={paths.sysctl_upper},workdir={paths.run / 'sysctl/work'}"
    entries: list[tuple[str | Path, Path, str, str]] = [
        *((f"/dev/{name}", root / "dev" / name, "none", "bind") for name in DEVICES),
        ("devpts", root / "dev/pts", "devpts", "newinstance,ptmxmode=0666,mode=620,gid=5"),
        ("tmpfs", root / "dev/shm", "tmpfs", "mode=1777,nosuid,nodev"),
        ("cgroup2", root / "sys/fs/cgroup", "cgroup2", "nosuid,nodev,noexec"),
        ("overlay", root / "proc/sys", "overlay", f"{sysctl},volatile"),
        *((f"/proc/sys/{name}", root / "proc/sys" / name, "none", "bind") for name in OWN_SYSCTLS),
    ]
    entries += [(f"/{name}", root / name, "none", "bind,ro") for name in READ_ONLY if exists(Path("/", name))]
    entries += [("/dev/null", root / name, "none", "bind") for name in HIDDEN if exists(Path("/", name))]
    if cpu is not None:
        entries.append((cpu, root / CPU_HIERARCHY, "none", "bind,ro,X-mount.mkdir"))
    if exists(Path("/", DMI)):
        entries.append((paths.dmi, root / DMI, "none", "bind,ro"))
    return _table(*entries)


def _table(*entries: tuple[str | Path, Path, str, str]) -> str:
    return "".join(
        f"{_field(str(source))} {_field(str(target))} {kind} {_field(options)} 0 0\n"
        for source, target, kind, options in entries
    )


def _field(text: str) -> str:
    """As getmntent(3) wants it."""
    return text.replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011").replace("\n", "\\012")


def _overlay_path(path: Path) -> str:
    if set(str(path)) & set(",:\\"):
        raise UsageError(f"`{path}` holds a comma, colon or backslash", remedy="Keep the lab's files elsewhere.")
    return str(path)
