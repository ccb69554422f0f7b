"""Builds the deployer: a kernel, and an initramfs with its scripts, the tools they call and servers' drivers."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files as resources
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from clusterctl.edges.os_images.bootstrap import Variant, bootstrap
from clusterctl.edges.os_images.recipe import Recipe
from clusterctl.edges.os_images.rootfs import newest_kernel
from clusterctl.edges.os_images.store import INITRD, KERNEL, STUB, DeployerManifest
from clusterctl.edges.processes import Surroundings, run
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.ports import Deadline

_ALIGN = 4
_CONSOLE = (5, 1)


@dataclass(frozen=True, slots=True)
class _Entry:
    """`device`: major and minor number, for a device."""

    name: str
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def write_newc(root: Path, out: BinaryIO) -> None:
    """Write everything below `root`, in the order of names, owned by root, all times 0; and the device /dev/console.

    The kernel opens that device for init before anything is mounted.
    """
    for inode, entry in enumerate(_entries(root), start=1):
        _write(out, inode, entry)
    _write(out, 0, _Entry("TRAILER!!!", 0))


def _entries(root: Path) -> Iterator[_Entry]:
    for path in _below(root):
        mode = path.lstat().st_mode
        yield _Entry(str(path.relative_to(root)), mode, _content(path, mode))
    yield _Entry("dev/console", stat.S_IFCHR | 0o600, device=_CONSOLE)


def _below(root: Path) -> Iterator[Path]:
    """Yield a folder before its content; links to folders are not followed."""
    for path in sorted(root.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)


def _content(path: Path, mode: int) -> bytes:
    if stat.S_ISLNK(mode):
        return os.fsencode(path.readlink())
    return path.read_bytes() if stat.S_ISREG(mode) else b""


def _write(out: BinaryIO, inode: int, entry: _Entry) -> None:
    name = os.fsencode(entry.name) + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (inode, entry.mode, 0, 0, links, 0, len(entry.content), 0, 0, *entry.device, len(name), 0)
    header = b"070701" + b"".join(f"{value:08X}".encode() for value in fields)
    _padded(out, header + name)
    _padded(out, entry.content)


def _padded(out: BinaryIO, content: bytes) -> None:
    out.write(content + bytes(-len(content) % _ALIGN))


_VIRTUAL = ("virtio_pci", "virtio_net", "virtio_blk", "virtio_scsi", "virtio_rng", "e1000e", "e1000")
_DISKS = ("nvme", "ahci", "ata_piix", "sd_mod")
_FILES = (
    *("ext4", "crc32c_generic", "crc32c_intel", "crc32c_cryptoapi", "vfat"),
    *("nls_cp437", "nls_ascii", "nls_iso8859-1", "nls_utf8"),
)
_PORTS = (
    *("mlx5_core", "mlx4_core", "mlx4_en"),  # NVIDIA
    *("ixgbe", "ixgbevf", "i40e", "iavf", "ice", "igb", "igc", "idpf"),  # Intel
    *("bnxt_en", "bnx2x", "bnx2", "tg3"),  # Broadcom
    *("qede", "qed", "qlcnic", "cxgb4", "enic", "be2net", "sfc", "ionic", "atlantic", "r8169", "ena", "gve"),
    *("vmxnet3", "hv_netvsc"),
)
_CONTROLLERS = (
    *("vmd", "megaraid_sas", "mpt3sas", "mpi3mr", "smartpqi", "hpsa", "aacraid", "arcmsr", "pm80xx", "mvsas", "isci"),
    *("libahci_platform", "sata_nv", "sata_sil24", "sata_mv", "vmw_pvscsi", "hv_storvsc", "pci_hyperv"),
)
WANTED = (*_VIRTUAL, *_DISKS, *_FILES, *_PORTS, *_CONTROLLERS)


@dataclass(frozen=True, slots=True)
class Chosen:
    """`files`: below the kernel's module folder, as modules.dep writes them. `absent`: asked for, and neither a module
    of this kernel nor built in.
    """

    files: tuple[str, ...]
    absent: tuple[str, ...]


def choose(wanted: Iterable[str], dependencies: str, built_in: str) -> Chosen:
    """Choose the modules `wanted` by name with all that they need. `dependencies` is the text of modules.dep,
    `built_in` that of modules.builtin.
    """
    needs = dict(_parse(dependencies))
    paths = {_name(path): path for path in needs}
    inside = {_name(path) for path in built_in.split()}
    asked = [name.replace("-", "_") for name in wanted]
    files: set[str] = set()
    for name in asked:
        if name in paths:
            _take(paths[name], needs, files)
    absent = tuple(name for name in asked if name not in paths and name not in inside)
    return Chosen(tuple(sorted(files)), absent)


def _take(path: str, needs: Mapping[str, tuple[str, ...]], files: set[str]) -> None:
    if path in files:
        return
    files.add(path)
    for needed in needs.get(path, ()):
        _take(needed, needs, files)


def _parse(dependencies: str) -> Iterable[tuple[str, tuple[str, ...]]]:
    for line in dependencies.splitlines():
        path, colon, needed = line.partition(":")
        if colon:
            yield path.strip(), tuple(needed.split())


def _name(path: str) -> str:
    """Return the module's name: `kernel/fs/nls/nls_iso8859-1.ko.xz` is nls_iso8859_1."""
    return PurePosixPath(path).name.partition(".ko")[0].replace("-", "_")


SCRIPTS = ("deploy.sh", "messages.sh", "http.sh", "machine.sh", "disk.sh", "system.sh", "erase.sh", "udhcpc.sh")
PROBE = "probe.sh"
_LOADER = "/lib64/ld-linux-x86-64.so.2"
_TOOLS = (
    *("/usr/bin/curl", "/usr/bin/zstd", "/bin/tar", "/usr/bin/tee", "/usr/bin/sha256sum", "/bin/kmod", "/bin/busybox"),
    *("/sbin/sfdisk", "/sbin/wipefs", "/sbin/mke2fs", "/sbin/mkfs.fat"),
)
_MERGED = ("bin", "sbin", "lib", "lib64")
"""Folders that are links to those below /usr in every supported release; packages may have files in either."""
_LINKS = {
    "usr/sbin/modprobe": "../bin/kmod",
    "usr/sbin/mkfs.ext4": "mke2fs",
    "usr/sbin/mkfs.vfat": "mkfs.fat",
    **{name: f"usr/{name}" for name in _MERGED},
}
_FOLDERS = (
    "proc",
    "sys",
    "dev",
    "run",
    "tmp",
    "target",
    "etc",
    "deploy",
    "usr/bin",
    "usr/sbin",
    "usr/lib",
    "usr/lib64",
)
_NOT_FROM_BUSYBOX = ("init", "busybox")
_MODULE_LISTS = ("modules.order", "modules.builtin", "modules.builtin.modinfo", "modules.softdep")
_OPTIONS = "options scsi_mod scan=sync\n"
"""Disks are found while their controller's driver loads, not some time after."""


EFI_STUB = "usr/lib/systemd/boot/efi/linuxx64.efi.stub"


def script(name: str) -> bytes:
    """Return one of the deployer's own programs, or `probe.sh`."""
    return resources(__package__).joinpath("deployer", name).read_bytes()


def own_content() -> bytes:
    """Return the deployer's content apart from packages, for its digest."""
    parts = " ".join((*WANTED, *_TOOLS, _OPTIONS, EFI_STUB)).encode()
    return b"\0".join((*(script(name) for name in ("init", *SCRIPTS)), parts))


def build_deployer(recipe: Recipe, workplace: Path) -> tuple[Path, DeployerManifest]:
    """Return the folder with kernel and initramfs, and its manifest. Works in `workplace` alone; needs root."""
    workshop, finished = workplace / "workshop", workplace / "finished"
    bootstrap(recipe, recipe.deployer_packages, Variant.UNPACKED, workshop)
    merge_usr(workshop)
    release = newest_kernel(workshop)
    tree = workshop / "tree"
    chosen = _fill(workshop, tree, release)
    finished.mkdir()
    shutil.copyfile(workshop / f"boot/vmlinuz-{release}", finished / KERNEL)
    shutil.copyfile(workshop / EFI_STUB, finished / STUB)
    _pack(tree, finished / INITRD)
    content = b"".join((finished / name).read_bytes() for name in (KERNEL, INITRD, STUB))
    return finished, DeployerManifest(
        digest=hashlib.sha256(content).hexdigest(),
        size=len(content),
        os=recipe.os,
        kernel=release,
        built=datetime.now(UTC).replace(microsecond=0),
        modules=len(chosen.files),
        recipe=recipe.deployer_digest(own_content()),
        stub=True,
    )


def merge_usr(workshop: Path) -> None:
    """Make links of /bin, /sbin, /lib and /lib64, as an installed system has them: their files go below /usr."""
    for name in _MERGED:
        folder, below = workshop / name, workshop / "usr" / name
        if folder.is_symlink():
            continue
        if folder.is_dir():
            shutil.copytree(folder, below, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(folder)
        if below.is_dir():
            folder.symlink_to(f"usr/{name}")


def _fill(workshop: Path, tree: Path, release: str) -> Chosen:
    for folder in _FOLDERS:
        (tree / folder).mkdir(parents=True, exist_ok=True)
    for tool in _TOOLS:
        for path in (tool, *_libraries(workshop, tool)):
            _copy(workshop, tree, path)
    for name, target in _LINKS.items():
        (tree / name).symlink_to(target)
    for applet in _in(workshop, "/bin/busybox", "--list").split():
        if applet not in _NOT_FROM_BUSYBOX and not _there(tree, applet):
            (tree / "usr/bin" / applet).symlink_to("busybox")
    for name in SCRIPTS:
        (tree / "deploy" / name).write_bytes(script(name))
    (tree / "deploy/udhcpc.sh").chmod(0o755)
    (tree / "init").write_bytes(script("init"))
    (tree / "init").chmod(0o755)
    (tree / "etc/clusterctl-deployer").touch()
    (tree / "etc/modprobe.d").mkdir()
    (tree / "etc/modprobe.d/clusterctl.conf").write_text(_OPTIONS)
    return _add_modules(workshop, tree, release)


def _add_modules(workshop: Path, tree: Path, release: str) -> Chosen:
    """Add modules, with lists of dependencies and aliases of these modules and no others."""
    source = workshop / "lib/modules" / release
    target = tree / "usr/lib/modules" / release
    target.mkdir(parents=True)
    _in(workshop, "/sbin/depmod", release)
    chosen = choose(WANTED, (source / "modules.dep").read_text(), (source / "modules.builtin").read_text())
    for file in chosen.files:
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / file, target / file)
    for name in _MODULE_LISTS:
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)
    _add_firmware(workshop, tree, release, chosen.files)
    _in(workshop, "/sbin/depmod", "-b", "/tree", release)
    return chosen


def _add_firmware(workshop: Path, tree: Path, release: str, files: Iterable[str]) -> None:
    """Add the firmware of the modules, as far as the packages have it."""
    shelf = workshop / "lib/firmware"
    if not shelf.is_dir():
        return
    paths = [f"/lib/modules/{release}/{file}" for file in files]
    for name in sorted(set(_in(workshop, "/sbin/modinfo", "-F", "firmware", *paths).split())):
        for found in shelf.glob(f"{name}*"):
            if found.is_file():
                target = tree / "usr/lib/firmware" / found.relative_to(shelf)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(found, target)


def _libraries(workshop: Path, tool: str) -> Iterator[str]:
    """Yield what the dynamic loader would load for it; the loader itself too. A static program needs none."""
    if tool == "/bin/busybox":
        return
    yield _LOADER
    for line in _in(workshop, _LOADER, "--list", tool).splitlines():
        words = line.split()
        if "=>" in words and words[-2].startswith("/"):
            yield words[-2]


def _copy(workshop: Path, tree: Path, path: str) -> None:
    """Copy to the same path; /bin, /sbin and /lib stand for those below /usr."""
    inner = path.lstrip("/")
    source = workshop / inner
    target = tree / (inner if inner.startswith("usr/") else f"usr/{inner}")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source.resolve(), target)
    target.chmod(0o755)


def _there(tree: Path, name: str) -> bool:
    return any(
        (tree / folder / name).is_symlink() or (tree / folder / name).exists() for folder in ("usr/bin", "usr/sbin")
    )


def _in(workshop: Path, *argv: str) -> str:
    """Run a program of the unpacked system within it."""
    result = run(("chroot", str(workshop), *argv), Deadline.after(300))
    if result.exit_status != 0:
        raise EnvironmentBrokenError(
            f"`{argv[0]}` of the deployer's release failed: {result.stderr.strip()[-300:]}",
            remedy="Check that the suite is whole on its mirror, then try again.",
        )
    return result.stdout


def _pack(tree: Path, initrd: Path) -> None:
    archive = initrd.with_name("initrd.cpio")
    with archive.open("wb") as out:
        write_newc(tree, out)
    argv = ["zstd", "-T0", "-15", "--quiet", "--rm", "-o", str(initrd), str(archive)]
    result = run(argv, Deadline.after(600), Surroundings(missing="apt-get install zstd"))
    if result.exit_status != 0:
        raise EnvironmentBrokenError(
            f"the deployer could not be packed: {result.stderr.strip()[-300:]}",
            where=str(initrd.parent),
            remedy="Make room on that disk, then try again.",
        )
