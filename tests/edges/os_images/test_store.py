"""The boot folder: its files are whole, a name stands for one image, and a missing file is reported with the command."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clusterctl.edges.os_images.builder import LOADERS, place_loaders
from clusterctl.edges.os_images.store import BootFolder, DeployerManifest, ImageManifest, OsImage
from clusterctl.edges.pxe.accounts import InstallAccount, require_readable
from clusterctl.fleet.errors import EnvironmentBrokenError, ParseError, UsageError

BUILT = datetime(2026, 11, 22, 10, tzinfo=UTC)


def manifest(name: str = "debian-12", digest: str = "ab" * 32) -> ImageManifest:
    return ImageManifest(
        name=name, digest=digest, size=3, os="debian 12", kernel="6.1.0", built=BUILT, packages=9, recipe="r"
    )


def put(store: BootFolder, reported: ImageManifest, content: bytes = b"tar") -> OsImage:
    with store.writing():
        place = store.workplace("image")
        finished = place / "finished"
        finished.mkdir()
        (finished / "rootfs.tar.zst").write_bytes(content)
        image = store.publish_image(finished, reported)
        place.rmdir()
    return image


def test_a_published_image_is_found_by_its_name(tmp_path: Path) -> None:
    """With the path under which it is served, which is there."""
    store = BootFolder(tmp_path / "boot")
    published = put(store, manifest())
    assert store.image("debian-12") == published
    assert published.path_below_files == f"images/debian-12/{'ab' * 32}/rootfs.tar.zst"
    assert (store.path / published.path_below_files).read_bytes() == b"tar"
    assert (store.path / published.path_below_files).stat().st_mode & 0o777 == 0o644


def test_a_build_under_a_closed_umask_is_open_to_the_http_service(tmp_path: Path) -> None:
    """Umask 077: folders, images and loaders can be read by a user who owns none of them."""
    packaged = tmp_path / "packaged"
    packaged.mkdir()
    for name in LOADERS:
        (packaged / name).write_bytes(b"a loader")
    before = os.umask(0o077)
    try:
        store = BootFolder(tmp_path / "boot")
        put(store, manifest())
        place_loaders(store.tftp, packaged)
    finally:
        os.umask(before)
    require_readable(store.path, InstallAccount("clusterctl-pxe", 990, 990))


def test_a_name_stands_for_the_newest_and_the_old_one_stays(tmp_path: Path) -> None:
    """A machine that is being written goes on with the image it began with."""
    store = BootFolder(tmp_path)
    old = put(store, manifest())
    new = put(store, manifest(digest="cd" * 32))
    assert store.image("debian-12") == new
    assert (tmp_path / old.path_below_files).exists()
    assert [image.digest for image in store.images()] == [new.digest]


def test_publishing_the_same_bytes_again_changes_nothing(tmp_path: Path) -> None:
    """The same digest is the same folder."""
    store = BootFolder(tmp_path)
    assert put(store, manifest()) == put(store, manifest())
    assert not list(tmp_path.glob(".building-*"))


def put_deployer(store: BootFolder, stub: bytes = b"") -> Path:
    """Return its folder; without a `stub` it is one of an earlier release."""
    kernel, initrd = b"a kernel", b"an initrd"
    digest = hashlib.sha256(kernel + initrd + stub).hexdigest()
    reported = DeployerManifest(
        digest=digest, size=17, os="debian 12", kernel="6.1.0", built=BUILT, modules=1, recipe="r", stub=bool(stub)
    )
    with store.writing():
        finished = store.workplace("deployer")
        (finished / "vmlinuz").write_bytes(kernel)
        (finished / "initrd").write_bytes(initrd)
        if stub:
            (finished / "stub.efi").write_bytes(stub)
        store.publish_deployer(finished, reported)
    return store.path / "deployer" / digest


def test_the_deployer_has_no_name(tmp_path: Path) -> None:
    """There is one, with kernel and initrd under its digest."""
    store = BootFolder(tmp_path)
    digest = put_deployer(store).name
    assert store.deployer().kernel_path == f"deployer/{digest}/vmlinuz"
    assert store.deployer().initrd_path == f"deployer/{digest}/initrd"


def test_a_deployer_for_https_has_a_stub(tmp_path: Path) -> None:
    """It counts in the digest: changed, it boots no machine. One of an earlier release has none, and boots by iPXE."""
    store = BootFolder(tmp_path)
    put_deployer(store)
    assert store.deployer().stub_path == ""
    folder = put_deployer(store, b"a stub")
    assert store.deployer().stub_path == f"deployer/{folder.name}/stub.efi"
    (folder / "stub.efi").write_bytes(b"another")
    with pytest.raises(UsageError, match=r"stub.efi is not what was built"):
        store.deployer()


@pytest.mark.parametrize("name", ["vmlinuz", "initrd"])
def test_a_deployer_that_was_changed_boots_no_machine(tmp_path: Path, name: str) -> None:
    """One byte of its kernel or initrd, of the same length and with the old time: refused, also after it was used. The
    remedy is what repairs it.
    """
    store = BootFolder(tmp_path)
    folder = put_deployer(store)
    good, file = store.deployer(), folder / name
    before = file.stat()
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(UsageError, match="SHA-256 has changed") as caught:
        store.deployer()
    assert (caught.value.where, "clusterctl image build" in caught.value.remedy) == (str(folder), True)
    file.unlink()
    with pytest.raises(UsageError):
        store.deployer()
    shutil.rmtree(folder)
    assert store.current_deployer() is None
    put_deployer(store)
    assert store.deployer() == good


@pytest.mark.parametrize("name", ["debian-12", "../../etc", "", ".building-image"])
def test_a_missing_file_is_reported_with_the_command(tmp_path: Path, name: str) -> None:
    """A path is no name."""
    with pytest.raises(UsageError) as caught:
        BootFolder(tmp_path / "nowhere").image(name)
    assert f"clusterctl image build {name}" in caught.value.remedy


def test_a_manifest_that_is_not_understood_is_refused(tmp_path: Path) -> None:
    """Never guessed."""
    store = BootFolder(tmp_path)
    put(store, manifest())
    (tmp_path / "images/debian-12/current/manifest.json").write_text('{"name": "debian-12"}')
    with pytest.raises(ParseError, match="digest"):
        store.image("debian-12")


def test_what_a_killed_build_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """And is never taken for an image."""
    store = BootFolder(tmp_path)
    with store.writing():
        (store.workplace("image") / "root").mkdir()
    assert store.images() == ()
    with store.writing():
        assert not list(tmp_path.glob(".building-*"))


def test_writers_take_turns(tmp_path: Path) -> None:
    """The second waits for the first, and then sees its work."""
    store = BootFolder(tmp_path)
    seen: list[int] = []

    def second() -> None:
        with store.writing():
            seen.append(len(store.images()))

    with store.writing():
        thread = threading.Thread(target=second)
        thread.start()
        finished = store.workplace("image")
        store.publish_image(finished, manifest())
    thread.join(600)
    assert seen == [1]


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """With where and why."""
    (tmp_path / "boot").write_text("a file")
    with (
        pytest.raises(EnvironmentBrokenError, match="the boot folder cannot be written"),
        BootFolder(tmp_path / "boot").writing(),
    ):
        pass
