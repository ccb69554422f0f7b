"""Recipes, the modules that a deployer carries, and the archive that the kernel unpacks."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import pytest

from clusterctl.edges.os_images.apt import bare
from clusterctl.edges.os_images.builder import LOADERS, place_loaders
from clusterctl.edges.os_images.initramfs import choose, merge_usr, write_newc
from clusterctl.edges.os_images.recipe import Recipe, default_name
from clusterctl.edges.os_images.rootfs import newest_kernel
from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError

DEPENDENCIES = """\
kernel/fs/ext4/ext4.ko: kernel/fs/jbd2/jbd2.ko kernel/fs/mbcache.ko
kernel/fs/jbd2/jbd2.ko:
kernel/fs/mbcache.ko:
kernel/drivers/net/mlx5/mlx5_core.ko.xz: kernel/drivers/net/mlxfw.ko.xz
kernel/drivers/net/mlxfw.ko.xz: kernel/lib/objagg.ko.xz
kernel/lib/objagg.ko.xz:
kernel/fs/nls/nls_iso8859-1.ko:
kernel/sound/snd.ko:
"""


def test_modules_come_with_all_that_they_need() -> None:
    """Through every level, whatever they are packed with, and no others."""
    chosen = choose(("ext4", "mlx5_core", "nls_iso8859-1"), DEPENDENCIES, "")
    assert [Path(file).name for file in chosen.files] == [
        "mlx5_core.ko.xz",
        "mlxfw.ko.xz",
        "ext4.ko",
        "jbd2.ko",
        "mbcache.ko",
        "nls_iso8859-1.ko",
        "objagg.ko.xz",
    ]
    assert chosen.absent == ()


@pytest.mark.parametrize("suite", ["jammy", "noble"])
def test_an_image_of_ubuntu_brings_apt(suite: str) -> None:
    """Its essential packages do not: a host without apt-get cannot be configured."""
    assert "apt" in Recipe("image", suite, "http://archive.example/ubuntu", small=True).all_packages


def test_files_of_packages_are_found_on_either_side_of_usr(tmp_path: Path) -> None:
    """The loader of one package is below /usr, a library of another is not: in an installed system both are on both."""
    for file in ("usr/lib64/ld.so", "lib/x86/one.so", "usr/lib/x86/two.so", "bin/sh"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(file)
    for _again in range(2):
        merge_usr(tmp_path)
        assert (tmp_path / "lib64/ld.so").read_text() == "usr/lib64/ld.so"
        assert sorted(one.name for one in (tmp_path / "lib/x86").iterdir()) == ["one.so", "two.so"]
        assert (tmp_path / "usr/bin/sh").read_text() == "bin/sh"
        assert not (tmp_path / "sbin").exists()


def test_what_is_built_in_is_not_missed() -> None:
    """A driver that this kernel has neither as a module nor in itself is reported."""
    chosen = choose(("nvme", "idpf"), DEPENDENCIES, "kernel/drivers/nvme/host/nvme.ko\n")
    assert chosen.absent == ("idpf",)


def test_a_circle_of_dependencies_ends() -> None:
    """modules.dep has none; a broken one does not hang us."""
    assert len(choose(("a",), "k/a.ko: k/b.ko\nk/b.ko: k/a.ko\n", "").files) == 2


@pytest.mark.skipif(shutil.which("busybox") is None, reason="busybox is not installed")
def test_the_archive_is_what_cpio_reads(tmp_path: Path) -> None:
    """Folders before what they hold, links as links, modes kept; /dev/console is added."""
    tree = tmp_path / "tree"
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "dev").mkdir()
    (tree / "bin").symlink_to("usr/bin")
    (tree / "usr/bin/tool").write_bytes(b"abcde")
    (tree / "usr/bin/tool").chmod(0o755)
    archive = io.BytesIO()
    write_newc(tree, archive)
    listed = subprocess.run(
        ["busybox", "cpio", "-tv"], input=archive.getvalue(), capture_output=True, check=True
    ).stdout.decode()
    assert "bin -> usr/bin" in listed
    assert listed.index(" usr/bin\n") < listed.index("usr/bin/tool")
    (tool,) = [line for line in listed.splitlines() if line.endswith("usr/bin/tool")]
    assert tool.startswith("-rwxr-xr-x")
    assert " 5 " in tool
    (console,) = [line for line in listed.splitlines() if line.endswith("dev/console")]
    assert console.startswith("crw-------")


def test_the_same_tree_is_the_same_archive(tmp_path: Path) -> None:
    """Nothing of when and where it was made is in it."""
    archives = set()
    for name in ("one", "two"):
        (tmp_path / name / "etc").mkdir(parents=True)
        (tmp_path / name / "etc/a").write_text("a")
        out = io.BytesIO()
        write_newc(tmp_path / name, out)
        archives.add(out.getvalue())
    assert len(archives) == 1


def test_a_recipe_is_known_by_its_parts() -> None:
    """Its name is no part; a package more is."""
    one = Recipe("a", "bookworm")
    assert one.digest() == Recipe("b", "bookworm").digest()
    others = (
        Recipe("a", "bookworm", small=True),
        Recipe("a", "bookworm", packages=("htop",)),
        Recipe("a", "bookworm", mirror="http://192.0.2.1/debian"),
        Recipe("a", "noble"),
    )
    assert len({one.digest(), *(other.digest() for other in others)}) == 5


def test_firmware_goes_into_the_deployer_too() -> None:
    """Its network card may need it before there is a network; a program need not be there."""
    recipe = Recipe("a", "bookworm", packages=("firmware-bnx2x", "htop"))
    assert "firmware-bnx2x" in recipe.deployer_packages
    assert "htop" not in recipe.deployer_packages
    assert recipe.deployer_digest(b"") != Recipe("a", "bookworm").deployer_digest(b"")


def test_any_deployer_of_the_same_scripts_will_do() -> None:
    """It writes images of every release; other scripts make another one."""
    assert Recipe("a", "bookworm").deployer_digest(b"1") == Recipe("b", "noble", small=True).deployer_digest(b"1")
    assert Recipe("a", "bookworm").deployer_digest(b"1") != Recipe("a", "bookworm").deployer_digest(b"2")


@pytest.mark.parametrize(
    ("name", "suite", "packages"),
    [("a", "sid", ()), ("../a", "bookworm", ()), ("", "bookworm", ()), ("a", "bookworm", ("--purge",))],
)
def test_a_wrong_recipe_is_wrong_usage(name: str, suite: str, packages: tuple[str, ...]) -> None:
    """Before anything is fetched."""
    with pytest.raises(UsageError):
        Recipe(name, suite, packages=packages)


def test_the_usual_names() -> None:
    """The release, and whether it is the small one."""
    assert default_name("bookworm", small=False) == "debian-12"
    assert default_name("noble", small=True) == "ubuntu-24.04-small"


def test_an_image_has_no_password_of_a_mirror() -> None:
    """What the machine's apt knows does not go to the hosts."""
    source = "deb [signed-by=/root/k.gpg] http://me:pw-7@192.0.2.1/debian bookworm main"
    assert bare(source) == "deb http://192.0.2.1/debian bookworm main"


def test_the_network_boot_loaders_are_copied(tmp_path: Path) -> None:
    """All of them, or the error names the package."""
    packaged = tmp_path / "ipxe"
    packaged.mkdir()
    with pytest.raises(EnvironmentBrokenError, match=r"snponly\.efi"):
        place_loaders(tmp_path / "tftp", packaged)
    for name in LOADERS:
        (packaged / name).write_bytes(name.encode())
    place_loaders(tmp_path / "tftp", packaged)
    assert sorted(path.name for path in (tmp_path / "tftp").iterdir()) == sorted(LOADERS)


def test_the_newest_kernel_is_by_number(tmp_path: Path) -> None:
    """Not by letters; none at all is reported with the folder."""
    with pytest.raises(EnvironmentBrokenError, match="no kernel"):
        newest_kernel(tmp_path)
    (tmp_path / "boot").mkdir()
    for release in ("6.1.0-10-amd64", "6.1.0-9-amd64"):
        (tmp_path / f"boot/vmlinuz-{release}").touch()
    assert newest_kernel(tmp_path) == "6.1.0-10-amd64"
