"""What each way to install gives a machine: boot files, documents by card, and its errors where something is missing."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.edges.pxe.install_profiles import AnswerProfile, AttemptFactory, ImageProfile
from clusterctl.edges.pxe.overlay import OverlayHost, overlay
from clusterctl.edges.pxe.settings import Dhcp, Method, PxeSettings
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.network.host_network import Addressing, HostNetwork, HostPort
from tests.edges.pxe.kit import MAC
from tests.edges.pxe.test_installer import OTHER_MAC, TARGET, FakeStore, HandClock

CARD = MAC.replace(":", "-")


def settings(folder: Path, method: Method, series: str = "") -> PxeSettings:
    return PxeSettings(
        "prov0",
        "192.0.2.1",
        folder,
        method=method,
        image="debian-12",
        kernel="k/vmlinuz",
        initrd="k/initrd",
        iso="k/live.iso" if series in ("jammy", "noble") else "",
        series=series,
        nameservers=("192.0.2.53",),
        time_servers=("192.0.2.123",),
        apt_proxy="http://192.0.2.1:3142",
    )


def unpacked(content: bytes) -> dict[str, tuple[str, int]]:
    """Path → text (or where a link leads) and mode."""
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        found = {}
        for entry in tar:
            assert (entry.uid, entry.gid, entry.mtime) == (0, 0, 0)
            file = tar.extractfile(entry) if entry.isreg() else None
            found[entry.name] = (file.read().decode() if file else entry.linkname, entry.mode)
        return found


def test_the_overlay_makes_the_image_this_host(tmp_path: Path) -> None:
    """Name, user with a key and no password, sudo, sshd, network, name and time servers, apt's cache."""
    profile = ImageProfile(settings(tmp_path, Method.IMAGE), FakeStore())
    files = unpacked(profile.documents(TARGET, "t")["overlay.tar"])
    assert files["etc/hostname"][0] == "node001\n"
    assert files["etc/ssh/authorized_keys.d/ops"] == (f"{TARGET.authorized_key}\n", 0o644)
    assert "PasswordAuthentication no\n" in files["etc/ssh/sshd_config.d/10-clusterctl.conf"][0]
    assert "PermitRootLogin no\n" in files["etc/ssh/sshd_config.d/10-clusterctl.conf"][0]
    assert files["etc/sudoers.d/90-clusterctl"] == ("ops ALL=(ALL) NOPASSWD:ALL\n", 0o440)
    assert files["etc/sysusers.d/clusterctl.conf"][0].startswith("u ops - ")
    assert files["etc/resolv.conf"][0] == "nameserver 192.0.2.53\n"
    assert "NTP=192.0.2.123\n" in files["etc/systemd/timesyncd.conf.d/10-clusterctl.conf"][0]
    assert "http://192.0.2.1:3142" in files["etc/apt/apt.conf.d/90clusterctl-proxy"][0]
    assert "etc" not in files  # the image's own folder keeps its mode
    assert not any(name.startswith(("/", "..")) for name in files)


@pytest.mark.parametrize(("dhcp", "only_from"), [(Dhcp.RESERVE, TARGET.address), (Dhcp.PROXY, "")])
def test_only_a_reserved_address_binds_an_attempt(tmp_path: Path, dhcp: Dhcp, only_from: str) -> None:
    """Where another server gives the addresses, ours knows none."""
    chosen = replace(settings(tmp_path, Method.IMAGE), dhcp=dhcp)
    attempt, _ = AttemptFactory(chosen, ImageProfile(chosen, FakeStore()), HandClock()).arm(TARGET)
    assert TARGET.address
    assert attempt.only_from == only_from


def test_the_same_words_are_the_same_tar() -> None:
    host = OverlayHost("n1", "root", "ssh-ed25519 AAAA", {"/etc/b": "b", "/etc/a": "a"})
    assert overlay(host) == overlay(replace(host, network={"/etc/a": "a", "/etc/b": "b"}))
    assert (
        "PermitRootLogin prohibit-password\n" in unpacked(overlay(host))["etc/ssh/sshd_config.d/10-clusterctl.conf"][0]
    )


def test_the_sites_network_is_laid_over_the_image(tmp_path: Path) -> None:
    """Then it is the same whichever card booted, and nothing asks by DHCP."""
    port = HostPort(MAC, "eth0", Addressing(("192.0.2.17/24",), gateway="192.0.2.254"))
    target = replace(TARGET, network=HostNetwork(ports=(port,), nameservers=("192.0.2.54",)))
    documents = ImageProfile(settings(tmp_path, Method.IMAGE), FakeStore()).documents(target, "t")
    assert documents.keys() == {"overlay.tar"}
    files = unpacked(documents["overlay.tar"])
    network = "".join(text for name, (text, _) in files.items() if name.endswith(".network"))
    assert "192.0.2.17/24" in network
    assert "DHCP=ipv4" not in network
    assert files["etc/resolv.conf"][0] == "nameserver 192.0.2.54\n"


def boot_folder(folder: Path) -> Path:
    (folder / "k").mkdir()
    for name in ("vmlinuz", "initrd", "live.iso"):
        (folder / "k" / name).write_bytes(b"x")
    return folder


@pytest.mark.parametrize(
    ("method", "series", "names"),
    [
        (Method.AUTOINSTALL, "jammy", {"user-data", "meta-data", "vendor-data", "network-config"}),
        (Method.AUTOINSTALL, "noble", {"user-data", "meta-data", "vendor-data", "network-config"}),
        (Method.PRESEED, "bookworm", {"preseed.cfg"}),
    ],
)
def test_the_distributions_own_installers(tmp_path: Path, method: Method, series: str, names: set[str]) -> None:
    """Each card has answers of its own, which name that card; the kernel's line names the one that boots."""
    message = settings(boot_folder(tmp_path), method, series)
    factory = AttemptFactory(message, AnswerProfile(message, HandClock()), HandClock())
    factory.check(TARGET)
    attempt, documents = factory.arm(TARGET)
    assert documents.keys() == names | {
        f"{name}.{card}" for name in names for card in (CARD, OTHER_MAC.replace(":", "-"))
    }
    main = next(iter(sorted(names & {"user-data", "preseed.cfg"})))
    assert f"/t/{attempt.token}".encode() in documents[f"{main}.{CARD}"]
    assert attempt.boot is not None
    assert "{mac}" in attempt.boot.arguments or "{bootif}" in attempt.boot.arguments
    assert (attempt.boot.kernel, attempt.payload.path) == ("k/vmlinuz", "")


def test_a_kernel_that_is_not_there_is_named(tmp_path: Path) -> None:
    message = settings(boot_folder(tmp_path), Method.PRESEED, "bookworm")
    (tmp_path / "k" / "initrd").unlink()
    with pytest.raises(UsageError, match=r"provisioning\.initrd: there is no file k/initrd"):
        AnswerProfile(message, HandClock()).check()
