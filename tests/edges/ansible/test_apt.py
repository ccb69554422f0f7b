"""The lab's apt repositories, read by the real apt over HTTP; no network but loopback."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.emulators.apt import DRIVER_VERSION, ensure_repository, serve_apt, vendor_repository
from clusterctl_lab.emulators.apt.closure import HOST_PACKAGES
from clusterctl_lab.emulators.apt.server import host_files
from clusterctl_lab.emulators.apt.vendors.nvidia import NEWER_DRIVER_VERSION

TOOLS = ("apt-ftparchive", "gpg", "dpkg-deb", "apt-get")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package database that has all that the roles install: nothing is to be fetched."""
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    root = tmp_path_factory.mktemp("image")
    status = root / "var/lib/dpkg/status"
    status.parent.mkdir(parents=True)
    status.write_text(installed_packages())
    return root


def installed_packages() -> str:
    """The package database of a host that has all of the distribution's packages that roles install."""
    entry = "Package: {}\nStatus: install ok installed\nVersion: 1\nArchitecture: all\nDescription: x\nMaintainer: x\n"
    return "\n".join(entry.format(name) for name in HOST_PACKAGES)


@pytest.fixture(scope="module")
def root(image: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ensure_repository(image, lambda _: None, cache=tmp_path_factory.mktemp("cache"))


class Apt:
    """The machine's apt with a state of its own, and our repository as its only source."""

    def __init__(self, folder: Path, url: str, key: str) -> None:
        for name in ("lists/partial", "archives/partial", "parts"):
            (folder / name).mkdir(parents=True)
        (folder / "status").write_text(installed_packages())
        (folder / "key.asc").write_text(key)
        sources = folder / "parts/nvidia.sources"
        sources.write_text(f"Types: deb\nURIs: {url}\nSuites: /\nSigned-By: {folder}/key.asc\n")
        options = {
            "Dir::State::status": folder / "status",
            "Dir::State::lists": folder / "lists",
            "Dir::State::extended_states": folder / "extended",
            "Dir::Cache": folder,
            "Dir::Etc::sourcelist": "/dev/null",
            "Dir::Etc::sourceparts": folder / "parts",
            "APT::Sandbox::User": "root",
            "APT::Update::Error-Mode": "any",
            "Acquire::http::Proxy": "DIRECT",
            "Debug::NoLocking": "true",
        }
        self._options = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]

    async def __call__(self, *argv: str) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            "apt-get",
            *self._options,
            *argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C"},
        )
        output, _ = await process.communicate()
        return process.returncode or 0, output.decode()


def update_and(root: Path, folder: Path, *argv: str) -> tuple[int, str]:
    """Serve `root`, let apt read it, then run one more apt command."""

    async def use() -> tuple[int, str]:
        server = await serve_apt(root, "127.0.0.1", 0)
        try:
            url, key = vendor_repository("nvidia", root, "127.0.0.1", server.port)
            apt = Apt(folder, url, key)
            code, output = await apt("update")
            return (code, output) if code else await apt(*argv)
        finally:
            await server.close()

    return asyncio.run(use())


def test_apt_trusts_it_and_finds_both_driver_versions(root: Path, tmp_path: Path) -> None:
    """Unpinned, apt would take the newer driver: the role's pin is what decides, as with the real repository."""
    code, output = update_and(root, tmp_path / "a", "--simulate", "install", "nvidia-open")
    assert (code, f"Inst nvidia-driver-cuda ({NEWER_DRIVER_VERSION}-1" in output) == (0, True), output

    pinned = ("--simulate", "install", f"nvidia-open={DRIVER_VERSION}-*", f"nvidia-driver-cuda={DRIVER_VERSION}-*")
    code, output = update_and(root, tmp_path / "b", *pinned, f"nvidia-kernel-open-dkms={DRIVER_VERSION}-*")
    assert (code, f"Inst nvidia-driver-cuda ({DRIVER_VERSION}-1" in output) == (0, True), output


def test_apt_refuses_what_was_changed_after_signing(root: Path, tmp_path: Path) -> None:
    """The signature is checked: an index that differs from the signed one is not used."""
    forged = tmp_path / "forged"
    shutil.copytree(root, forged)
    packages = forged / "nvidia/Packages"
    packages.write_text(packages.read_text().replace("stand-in", "impostor"))

    code, output = update_and(forged, tmp_path / "apt")
    assert code != 0
    assert "nvidia" in output


def test_it_is_built_once_and_leaves_no_private_key(image: Path, root: Path) -> None:
    """The second call finds the first one's; what signs is gone after signing."""
    assert ensure_repository(image, _never, cache=root.parent) == root
    names = {path.name for path in root.rglob("*")}
    assert not {name for name in names if "private" in name or name.endswith(".key")}
    assert "PRIVATE" not in (root / "key.asc").read_text()


def test_a_killed_build_is_cleaned_up_by_the_next(image: Path, tmp_path: Path) -> None:
    """Half a repository is never used."""
    leftover = tmp_path / ".unfinished-apt-0123456789ab"
    (leftover / "debian").mkdir(parents=True)
    built = ensure_repository(image, lambda _: None, cache=tmp_path)

    assert built.is_dir()
    assert not leftover.exists()


def test_hosts_get_the_mirror_and_its_key(root: Path) -> None:
    """One signed source; its key lies where the source names it."""
    files = host_files(root, "10.88.0.3")
    sources = files["/etc/apt/sources.list.d/lab.sources"][0].decode()

    assert "URIs: http://10.88.0.3/debian/\n" in sources
    keyring = sources.partition("Signed-By: ")[2].strip()
    assert files[keyring] == ((root / "key.asc").read_bytes(), 0o644)


def test_an_image_without_packages_is_refused(tmp_path: Path) -> None:
    """In words, not with a traceback."""
    with pytest.raises(EnvironmentBrokenError, match="package database"):
        ensure_repository(tmp_path, _never, cache=tmp_path / "cache")


def test_a_taken_address_is_refused(root: Path) -> None:
    """A request for an address that this machine does not have is refused with the reason."""

    async def use() -> None:
        await serve_apt(root, "192.0.2.1", 0)

    with pytest.raises(EnvironmentBrokenError, match="cannot serve"):
        asyncio.run(use())


def _never(message: str) -> None:
    pytest.fail(f"built again: {message}")
