"""The stand-in for Docker: prints what the real command prints, and only while its service runs."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

from clusterctl.formats.host.documents import parse_docker_info
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from lab.tests.emulators.host_tools.tools_kit import ToolBox

NO_DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"


def box(root: Path, *, runs: bool) -> ToolBox:
    made = ToolBox(root, build(1, Layout(IPv4Network("10.88.0.0/16")), "secret"))
    if runs:
        (root / "run/clusterctl-lab-docker").mkdir(parents=True)
    return made


def test_a_running_daemon_reports_its_version_and_no_container(tmp_path: Path) -> None:
    """`docker info` as JSON with a server's version, `docker ps` with a header alone."""
    made = box(tmp_path, runs=True)
    found = parse_docker_info(made.run("docker", "info", "--format", "{{json .}}").stdout)
    assert (found.version, found.errors) == ("26.1.5", ())
    assert made.run("docker", "ps").stdout.split()[:2] == ["CONTAINER", "ID"]


def test_a_stopped_daemon_is_reported_by_docker_and_by_systemctl(tmp_path: Path) -> None:
    """In JSON the complaint is in `ServerErrors` and on stderr, with exit status 0; `ps` fails with it."""
    made = box(tmp_path, runs=False)
    info = made.run("docker", "info", "--format", "{{json .}}")
    assert (info.returncode, info.stderr.strip()) == (0, NO_DAEMON)
    assert parse_docker_info(info.stdout).errors == (NO_DAEMON,)
    listing = made.run("docker", "ps")
    assert (listing.returncode, listing.stdout, listing.stderr.strip()) == (1, "", NO_DAEMON)


def test_it_does_not_pretend_to_start_containers(tmp_path: Path) -> None:
    """It refuses what it cannot do, and names it."""
    ran = box(tmp_path, runs=True).run("docker", "run", "hello-world")
    assert ran.returncode == 1
    assert "stand-in" in ran.stderr


def install(root: Path, script: str) -> None:
    packaged = root / "usr/bin/docker-ce"
    packaged.parent.mkdir(parents=True, exist_ok=True)
    packaged.write_text(f"#!/bin/sh\n{script}\n")
    packaged.chmod(0o755)


GPUS_OF_A_CONTAINER = ("docker", "run", "--rm", "--gpus", "all", "image", "nvidia-smi", "-L")


def test_where_docker_is_installed_it_answers_itself(tmp_path: Path) -> None:
    """All but the GPUs of a container, which are the machine's."""
    made = box(tmp_path, runs=False)
    install(tmp_path, 'echo "the real one: $*"')
    assert made.run("docker", "load", "--input", "image.tar").stdout == "the real one: load --input image.tar\n"
    lines = made.run(*GPUS_OF_A_CONTAINER).stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"GPU {index}" for index in range(8)]


def test_where_docker_is_installed_and_stopped_no_container_runs(tmp_path: Path) -> None:
    """It is the installed one that is asked whether it runs, whatever the stand-in's own service does."""
    made = box(tmp_path, runs=True)
    install(tmp_path, "exit 1")
    ran = made.run(*GPUS_OF_A_CONTAINER)
    assert (ran.returncode, ran.stdout, ran.stderr.strip()) == (125, "", f"docker: {NO_DAEMON}")
