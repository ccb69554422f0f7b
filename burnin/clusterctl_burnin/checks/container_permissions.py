"""container_permissions: no user of the node can take it over through Docker, and each job can open GPUs and adapters.

It judges by what the projects document:

- Docker's socket gives root (docs.docker.com/engine/security): users other than its group must not write to it.
- A TCP address of Docker without client certificates gives root to all that reach it (docs.docker.com, protect access).
- Docker's data must not be entered by others: files of images with the setuid bit would serve them (CVE-2021-41091).
- `no-cgroups` of NVIDIA's container toolkit is for Docker without root: else containers cannot open their GPUs.
- A job opens /dev/nvidia* and /dev/infiniband/uverbs* itself: all users, a group, or an access list must be allowed to.
- /dev/infiniband/umad* and issm* send management packets to the whole fabric: they are for root, or for a group.

Users in the group of Docker's socket are root, too: the site decides that (role docker, `docker_users`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.container_permissions import (
    ContainerPermissions,
    DockerAccess,
    FileAccess,
    ToolkitSettings,
    parse_container_permissions,
)
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

PERMISSIONS = Probe("container_permissions", ("container-permissions",))
_NAME = "container_permissions"
_OTHERS, _OTHERS_WRITE, _OTHERS_USE = 0o007, 0o002, 0o006
_FOR_JOBS = re.compile(r"/dev/(?:nvidia(?:\d+|ctl|-uvm)|infiniband/(?:uverbs\d+|rdma_cm))")
_FOR_THE_FABRIC = re.compile(r"/dev/infiniband/(?:umad|issm)\d+")
_TOOLKIT_FILE = "/etc/nvidia-container-runtime/config.toml"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    found = parse_container_permissions(readings.text(PERMISSIONS))
    if expected.sku.gpu_count and not any(one.path.startswith("/dev/nvidia") for one in found.devices):
        raise UnmeasuredError("there is no device file of a GPU", remedy="load the driver (modprobe nvidia), or reboot")
    if found.docker is None and not found.devices:
        raise UnmeasuredError("neither Docker nor a device of a job is there", remedy="configure the node again")
    bad = [*_open_docker(found.docker), *_toolkit(found), *_devices(found.devices)]
    yield from bad
    if not bad:
        docker = "Docker is root's and its group's" if found.docker else "no Docker daemon runs"
        yield passed(_NAME, f"{docker}; jobs can open {len(found.devices)} device files as intended")


def _open_docker(docker: DockerAccess | None) -> Iterator[Finding]:
    if docker is None:
        return
    for socket in docker.sockets:
        if socket.mode & _OTHERS_WRITE:
            yield _open(
                socket,
                "every user can write to Docker's socket, and is root with it",
                f"chmod 660 {socket.path}; set SocketMode=0660 in docker.socket, or remove what changes the mode",
            )
    if docker.tcp and not docker.tls_verify:
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.DOCKER_OPEN,
            subject=docker.tcp[0],
            cause="Docker listens on TCP without client certificates: all that reach it are root",
            measured=", ".join(docker.tcp),
            expected="a Unix socket only, or tlsverify",
            remedy="remove the address from hosts in /etc/docker/daemon.json and from dockerd's arguments",
        )
    if docker.data is not None and docker.data.mode & _OTHERS:
        yield _open(
            docker.data,
            "every user can enter Docker's data, where programs of images may have the setuid bit",
            f"chmod 710 {docker.data.path} and update Docker (20.10.9 or later)",
        )


def _open(path: FileAccess, cause: str, remedy: str) -> Finding:
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.DOCKER_OPEN,
        subject=path.path,
        cause=cause,
        measured=f"mode {path.octal}, group {path.group}",
        expected="no access for others",
        remedy=remedy,
    )


def _toolkit(found: ContainerPermissions) -> Iterator[Finding]:
    """Yield settings of the toolkit by which containers of the daemon, which is root's, get no GPU."""
    settings = found.toolkit
    if settings is None or found.docker is None:
        return
    if settings.no_cgroups:
        yield _setting(
            Verdict.FAIL,
            "containers cannot open their GPUs: the toolkit leaves their device cgroup alone (no-cgroups)",
            "no-cgroups = true",
            "set no-cgroups = false",
        )
    if not _can_ask(settings):
        yield _setting(
            Verdict.WARN,
            "an unprivileged container cannot ask for GPUs but by CDI (docker run --device nvidia.com/gpu=all)",
            "no way for unprivileged containers",
            "see that jobs use CDI, or set accept-nvidia-visible-devices-envvar-when-unprivileged = true",
        )


def _can_ask(settings: ToolkitSettings) -> bool:
    return settings.by_environment or settings.by_mounts


def _setting(verdict: Verdict, cause: str, measured: str, remedy: str) -> Finding:
    return Finding(
        check=_NAME,
        verdict=verdict,
        code=Code.CONTAINER_GPUS_BARRED,
        subject=_TOOLKIT_FILE,
        cause=cause,
        measured=measured,
        remedy=f"{remedy} in {_TOOLKIT_FILE}, or configure the node again (role nvidia_container_toolkit)",
    )


def _devices(devices: tuple[FileAccess, ...]) -> Iterator[Finding]:
    for device in devices:
        if _FOR_JOBS.fullmatch(device.path) and not _usable(device):
            yield _device(
                device,
                Code.DEVICE_BARRED,
                "no job but root's can open the device",
                "read and write for all users, or for a group",
                "restore the mode 0666 (udev rules of rdma-core, NVreg_DeviceFileMode of nvidia), then reboot",
            )
        if _FOR_THE_FABRIC.fullmatch(device.path) and device.mode & _OTHERS_WRITE:
            yield _device(
                device,
                Code.DEVICE_OPEN,
                "every user can send management packets to the whole fabric",
                "no access for others",
                "remove the udev rule that opens it (grep umad /etc/udev/rules.d/*), then reboot",
            )


def _usable(device: FileAccess) -> bool:
    """Return whether more than root can open it: all users, the users of a group, or those of an access list."""
    return (
        device.mode & _OTHERS_USE == _OTHERS_USE
        or device.acl
        or (device.group != "root" and device.mode & 0o060 == 0o060)
    )


def _device(device: FileAccess, code: Code, cause: str, expected: str, remedy: str) -> Finding:
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=code,
        subject=device.path,
        cause=cause,
        measured=f"mode {device.octal}, group {device.group}",
        expected=expected,
        remedy=remedy,
    )


CHECK = Check(
    _NAME,
    (PERMISSIONS,),
    _judge,
    area=Area.SERVICES,
    causes=(
        Cause("nvidia_driver", unmeasured=True),
        Cause("gpu_count", unmeasured=True),
        Cause("docker", unmeasured=True),
    ),
)
