"""container_permissions: Docker, NVIDIA's container toolkit, device files.

Modes of /dev/infiniband from Mellanox/k8s-rdma-shared-dev-plugin issue 98, of /dev/nvidia* from
NVIDIA/nvidia-modprobe issue 7 and openSUSE/nvidia-driver-G06 issue 52; what they mean is in the check's docstring.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.container_permissions import parse_container_permissions
from clusterctl_burnin.node.programs import container_permissions
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import expected, healthy_text, readings

BY_ENVIRONMENT = "accept-nvidia-visible-devices-envvar-when-unprivileged"
Found = list[tuple[str, Verdict, Code]]


def healthy() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(healthy_text("container_permissions"))
    return found


def path(name: str, mode: int, group: str = "root", *, acl: bool = False) -> dict[str, Any]:
    return {"path": name, "mode": mode, "group": group, "acl": acl}


def found(document: Any) -> Found:
    judged = CHECKS["container_permissions"].findings(
        readings(container_permissions=lambda _: json.dumps(document)), expected()
    )
    return [(one.subject, one.verdict, one.code) for one in judged]


def with_docker(**changes: Any) -> dict[str, Any]:
    document = healthy()
    return {**document, "docker": {**document["docker"], **changes}}


def with_device(*device: Any, **more: Any) -> dict[str, Any]:
    document = healthy()
    new = path(*device, **more)
    return {**document, "devices": [*(one for one in document["devices"] if one["path"] != new["path"]), new]}


def test_a_healthy_node() -> None:
    assert found(healthy()) == [("node", Verdict.PASS, Code.PASSED)]


def test_a_node_without_docker() -> None:
    """Jobs by Slurm alone: devices are judged, and the toolkit's settings mean nothing."""
    document = {**healthy(), "docker": None, "toolkit": "[nvidia-container-cli]\nno-cgroups = true\n"}
    assert found(document) == [("node", Verdict.PASS, Code.PASSED)]


@pytest.mark.parametrize(
    ("changes", "subject"),
    [
        ({"sockets": [path("/run/docker.sock", 0o666, "docker")]}, "/run/docker.sock"),
        ({"sockets": [path("/run/docker.sock", 0o662, "root")]}, "/run/docker.sock"),
        ({"tcp": ["tcp://0.0.0.0:2375"]}, "tcp://0.0.0.0:2375"),
        ({"tcp": ["tcp://127.0.0.1:2375"]}, "tcp://127.0.0.1:2375"),
        ({"data": path("/data/docker", 0o711)}, "/data/docker"),
    ],
)
def test_docker_that_gives_root_away(changes: dict[str, Any], subject: str) -> None:
    assert found(with_docker(**changes)) == [(subject, Verdict.FAIL, Code.DOCKER_OPEN)]


@pytest.mark.parametrize(
    "changes",
    [
        {"tcp": ["tcp://0.0.0.0:2376"], "tls_verify": True},
        {"data": None},
        {"sockets": []},
        {"sockets": [path("/run/docker.sock", 0o664, "docker")]},
    ],
)
def test_docker_that_does_not(changes: dict[str, Any]) -> None:
    """Who may read a socket cannot connect to it (unix(7))."""
    assert [verdict for _, verdict, _ in found(with_docker(**changes))] == [Verdict.PASS]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("[nvidia-container-cli]\nno-cgroups = true\n", Verdict.FAIL),
        ("[nvidia-container-cli]\n  no-cgroups = true # for rootless\n", Verdict.FAIL),
        ("#[nvidia-container-cli]\n[nvidia-container-runtime]\nno-cgroups = true\n", Verdict.PASS),
        (f"{BY_ENVIRONMENT} = false\n", Verdict.WARN),
        (f"{BY_ENVIRONMENT} = false\naccept-nvidia-visible-devices-as-volume-mounts = true\n", Verdict.PASS),
        ("", Verdict.PASS),
    ],
)
def test_the_toolkit(text: str, verdict: Verdict) -> None:
    """A commented line is a default; a setting counts in its own section only."""
    assert [one for _, one, _ in found({**healthy(), "toolkit": text})] == [verdict]


@pytest.mark.parametrize(
    ("device", "code"),
    [
        (("/dev/nvidia0", 0o660), Code.DEVICE_BARRED),
        (("/dev/nvidia-uvm", 0o600, "video"), Code.DEVICE_BARRED),
        (("/dev/infiniband/uverbs0", 0o600), Code.DEVICE_BARRED),
        (("/dev/infiniband/uverbs0", 0o664), Code.DEVICE_BARRED),
        (("/dev/infiniband/umad0", 0o666), Code.DEVICE_OPEN),
        (("/dev/infiniband/issm0", 0o662), Code.DEVICE_OPEN),
    ],
)
def test_a_device_file_with_the_wrong_mode(device: tuple[Any, ...], code: Code) -> None:
    assert found(with_device(*device)) == [(device[0], Verdict.FAIL, code)]


@pytest.mark.parametrize(
    ("device", "acl"),
    [
        (("/dev/nvidia0", 0o660, "video"), False),
        (("/dev/nvidia0", 0o660), True),
        (("/dev/infiniband/umad0", 0o660, "rdma"), False),
        (("/dev/nvidia-caps/nvidia-cap1", 0o400), False),
    ],
)
def test_a_device_file_for_some(device: tuple[Any, ...], acl: bool) -> None:
    """NVreg_DeviceFileGID, an access list of logind, a group of rdma-core: the site has decided so."""
    assert [verdict for _, verdict, _ in found(with_device(*device, acl=acl))] == [Verdict.PASS]


def test_what_was_not_measured_is_no_pass() -> None:
    """No device file of a GPU, where the SKU has some; or nothing at all."""
    document = healthy()
    bare = [one for one in document["devices"] if "nvidia" not in one["path"]]
    assert [one[1] for one in found({**document, "devices": bare})] == [Verdict.INCONCLUSIVE]
    assert [one[1] for one in found({"docker": None, "toolkit": None, "devices": []})] == [Verdict.INCONCLUSIVE]
    assert [one[1] for one in found({})] == [Verdict.INCONCLUSIVE]


def test_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It reads the daemon that runs, by its arguments and its file, where its data is, and modes of device files."""
    files = {
        "proc/77/comm": "dockerd\n",
        "proc/77/cmdline": "/usr/bin/dockerd\0-H\0fd://\0--host=tcp://0.0.0.0:2375\0",
        "etc/docker/daemon.json": '{"data-root": "/data/docker", "hosts": ["tcp://[::]:2376"]}',
        "etc/nvidia-container-runtime/config.toml": "[nvidia-container-cli]\nno-cgroups = true\n",
        "run/docker.sock": "",
        "dev/nvidia0": "",
        "dev/nvidia-caps/nvidia-cap1": "",
        "dev/infiniband/umad0": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "data/docker").mkdir(parents=True)
    (tmp_path / "data/docker").chmod(0o710)
    (tmp_path / "run/docker.sock").chmod(0o666)
    assert container_permissions.main(tmp_path) == 0
    read = parse_container_permissions(capsys.readouterr().out)
    assert read.docker is not None
    assert read.toolkit is not None
    assert [(one.path, one.octal) for one in read.docker.sockets] == [("/run/docker.sock", "0666")]
    assert (read.docker.tcp, read.docker.tls_verify) == (("tcp://0.0.0.0:2375", "tcp://[::]:2376"), False)
    assert read.docker.data is not None
    assert (read.docker.data.path, read.docker.data.octal, read.toolkit.no_cgroups) == ("/data/docker", "0710", True)
    assert [one.path for one in read.devices] == ["/dev/nvidia0", "/dev/infiniband/umad0"]


def test_the_program_without_docker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of settings without a daemon that runs is no Docker."""
    (tmp_path / "etc/docker").mkdir(parents=True)
    (tmp_path / "etc/docker/daemon.json").write_text("[]")
    (tmp_path / "proc").mkdir()
    assert container_permissions.main(tmp_path) == 0
    assert parse_container_permissions(capsys.readouterr().out).docker is None


@pytest.mark.parametrize(
    ("words", "addresses"),
    [
        (["-H", "fd://", "-H", "tcp://a:1"], ["fd://", "tcp://a:1"]),
        (["-Htcp://a:1", "-H=tcp://b:2"], ["tcp://a:1", "tcp://b:2"]),
        (["--host", "tcp://a:1", "--tlsverify"], ["tcp://a:1"]),
        (["-H"], []),
    ],
)
def test_addresses_of_the_daemon(words: list[str], addresses: list[str]) -> None:
    assert container_permissions.hosts(words) == addresses
