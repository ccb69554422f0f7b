"""The shared root file system: built once, lean, and of no use to anyone who wants to log in."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from clusterctl_lab.image import HostRelease, _remove_unfinished, ensure_image, host_release
from clusterctl_lab.image_contents import DEVICE_TEMPLATE, DEVICES, MASKED_UNITS, customise
from clusterctl_lab.launch import daemon_environment
from clusterctl_lab.metal.os_image import os_image_name

needs_builder = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("mmdebstrap") is None, reason="building the image needs root and mmdebstrap"
)


def bare_installation(root: Path) -> Path:
    for folder in ("etc/systemd/system", "etc/ssh", "etc/apt/sources.list.d", "usr/lib/systemd/system-generators"):
        (root / folder).mkdir(parents=True)
    (root / "etc/ssh/ssh_host_ed25519_key").write_text("private")
    (root / "etc/apt/sources.list.d/debian.sources").write_text("Types: deb")
    for generator in ("systemd-fstab-generator", "systemd-getty-generator"):
        (root / "usr/lib/systemd/system-generators" / generator).touch()
    return root


def test_no_host_key_and_no_source_stays(tmp_path: Path) -> None:
    """Hosts share neither a key nor a package source: both come per host."""
    root = bare_installation(tmp_path)
    customise(root)
    assert not list(root.glob("etc/ssh/ssh_host_*"))
    assert not list(root.glob("etc/apt/sources.list.d/*"))
    assert (root / "etc/apt/sources.list").read_text() == ""
    assert "PasswordAuthentication no" in (root / "etc/ssh/sshd_config.d/10-lab.conf").read_text()


def test_units_are_masked(tmp_path: Path) -> None:
    """What a namespace cannot run, or need not, is a link to /dev/null; the fstab generator stays."""
    root = bare_installation(tmp_path)
    customise(root)
    for unit in MASKED_UNITS:
        assert (root / "etc/systemd/system" / unit).readlink() == Path("/dev/null")
    masked = {path.name for path in (root / "etc/systemd/system-generators").iterdir()}
    assert masked == {"systemd-getty-generator"}


def test_device_template_holds_no_device(tmp_path: Path) -> None:
    """The template has plain files to bind devices on, no device of its own."""
    customise(bare_installation(tmp_path))
    for name in DEVICES:
        assert (tmp_path / DEVICE_TEMPLATE / name).is_file()


@needs_builder
@pytest.mark.lab
def test_image_is_built_once() -> None:
    """The second call finds the first one's image and prints nothing; the image has what hosts need, and no keys."""
    image = ensure_image(print)
    messages: list[str] = []
    assert ensure_image(messages.append) == image
    assert messages == []
    for path in ("usr/sbin/sshd", "usr/bin/python3", "usr/bin/mpirun.openmpi", "usr/bin/sudo", "usr/sbin/init"):
        assert (image / path).exists(), path
    assert not list(image.glob("etc/ssh/ssh_host_*"))
    shadow = (image / "etc/shadow").read_text()
    assert all(line.split(":")[1] in {"*", "!", "!*"} for line in shadow.splitlines())


def test_killed_build_is_cleaned_away(tmp_path: Path) -> None:
    """What a killed build left is no image, and goes when the next one begins; finished images stay."""
    (tmp_path / ".building-rootfs-0123/etc").mkdir(parents=True)
    (tmp_path / ".building-rootfs-0123.apt.conf").touch()
    (tmp_path / "rootfs-4567").mkdir()
    _remove_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["rootfs-4567"]


def test_command_and_daemon_know_the_same_release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The daemon inherits the release of the hosts, its archive and keyring, and nothing else of the operator's."""
    keyring = tmp_path / "keyring.gpg"
    keyring.touch()
    named = {
        "CLUSTERCTL_LAB_RELEASE": "ubuntu/noble",
        "CLUSTERCTL_LAB_MIRROR": "http://archive.example/ubuntu",
        "CLUSTERCTL_LAB_KEYRING": str(keyring),
    }
    for name, value in {**named, "http_proxy": "http://user:secret@proxy.example"}.items():
        monkeypatch.setenv(name, value)
    assert host_release() == HostRelease("ubuntu", "noble", "http://archive.example/ubuntu", str(keyring))
    assert os_image_name() == "ubuntu-24.04-small"
    inherited = daemon_environment("/code")
    assert {name: inherited[name] for name in named} == named
    assert set(inherited) - set(named) == {"PATH", "LC_ALL", "PYTHONPATH"}
