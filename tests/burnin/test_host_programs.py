"""The programs that read what a site wants of its hosts: their reports, of this machine and of invented ones."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.fleet.finding import Verdict
from clusterctl.formats.host.documents import parse_container_gpus, parse_containers, parse_host_os, parse_name_answers
from clusterctl_burnin.alike import traits, unlike
from clusterctl_burnin.host_requirements import HostRequirements
from clusterctl_burnin.node.programs import container_gpus, containers, gpu_sharing, host_os, resolve_names
from clusterctl_burnin.probe import Probe, Status, UnmeasuredError, parse_readings, script
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import PROBES, expected, readings, result
from tests.paths import ROOT, needs_checkout


def test_requirements_travel_with_the_probes() -> None:
    """The program on the node passes them its settings: its answer holds them, for judging it again."""
    requirements = HostRequirements(release="bookworm", kernel="6.1.0-28-amd64")
    ran = subprocess.run(
        [sys.executable, "-"],
        input=script([Probe("os", ("host-os",))], requirements=requirements),
        capture_output=True,
        check=True,
    )
    output = parse_host_os(parse_readings(ran.stdout.decode()).probes["os"].stdout)
    assert (output.wanted.release, output.wanted.kernel) == ("bookworm", "6.1.0-28-amd64")
    assert output.kernel


def test_the_next_kernel_is_where_the_link_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As Debian and Ubuntu keep it; quotes of os-release are the shell's."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "boot").mkdir()
    (tmp_path / "etc/os-release").write_text('# x\nPRETTY_NAME="Ubuntu 22.04"\nVERSION_CODENAME=jammy\n')
    for kernel in ("5.15.0-91-generic", "5.15.0-94-generic"):
        (tmp_path / f"boot/vmlinuz-{kernel}").touch()
    (tmp_path / "boot/vmlinuz").symlink_to("vmlinuz-5.15.0-94-generic")
    host_os.main({}, tmp_path, "5.15.0-91-generic")
    output = parse_host_os(capsys.readouterr().out)
    assert (output.os_release or {})["PRETTY_NAME"] == "Ubuntu 22.04"
    assert output.installed == ("5.15.0-91-generic", "5.15.0-94-generic")
    assert output.next_boot == "5.15.0-94-generic"


def test_a_host_without_boot_files_reports_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is made up."""
    host_os.main({}, tmp_path, "6.1")
    output = parse_host_os(capsys.readouterr().out)
    assert (output.os_release, output.installed, output.next_boot) == (None, (), None)


def record(kind: int, length: int) -> bytes:
    """A resource record whose name is a pointer to the question."""
    return b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 60, length) + bytes(length)


ANSWERS = {
    b"four": (0, [record(5, 2), record(1, 4)]),
    b"six": (0, [record(28, 16)]),
    b"bare": (0, []),
    b"gone": (3, []),
}
"""Of a name server: by the name's first label, the code and the records of a type that was asked for."""


@pytest.fixture
def server() -> Iterator[tuple[str, int]]:
    """A name server for one datagram after another, in a thread."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))

        def serve() -> None:
            while True:
                asked, peer = own.recvfrom(4096)
                label = asked[13 : 13 + asked[12]]
                if label == b"stop":
                    return
                kind = struct.unpack("!H", asked[-4:-2])[0]
                code, records = ANSWERS[label]
                fitting = [one for one in records if struct.unpack("!H", one[2:4])[0] in (kind, 5)]
                head = asked[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(fitting), 0, 0)
                own.sendto(head + asked[12:] + b"".join(fitting), peer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield own.getsockname()
        own.sendto(resolve_names.query("stop.example", 1), own.getsockname())
        thread.join(600)


@pytest.mark.parametrize(
    ("name", "outcome"), [("four", "address"), ("six", "address"), ("bare", "none"), ("gone", "nxdomain")]
)
def test_the_answer_of_a_name_server_is_understood(name: str, outcome: str, server: tuple[str, int]) -> None:
    """An address of either family, also behind an alias; a name without one, and no such name."""

    def one(_server: str, asked: str, kind: int) -> str:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            own.settimeout(600)
            own.connect(server)
            own.send(resolve_names.query(asked, kind))
            return resolve_names.outcome(own.recv(4096), kind)

    assert resolve_names.look_up("x", f"{name}.example", one) == outcome


def test_a_server_that_refuses_or_is_out_of_reach_is_reported_in_words() -> None:
    """No server listens on this machine's port 53 at an address of its own."""
    assert resolve_names.ask("127.0.0.99", "mirror.example", 1) not in ("address", "none", "nxdomain")


def test_behind_the_stub_its_servers_are_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """systemd-resolved would hide one that is dead; a server that stands twice is asked once."""
    own, asked = tmp_path / "own", tmp_path / "asked"
    own.write_text("search cluster.example\nnameserver 127.0.0.53\n")
    asked.write_text("nameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.1\n")
    resolve_names.main({"names": ["a.b"]}, (str(own), str(asked)), lambda server, name: f"{server} {name}")
    output = parse_name_answers(capsys.readouterr().out)
    assert output.servers == ("10.0.0.1", "10.0.0.2")
    assert [answer.outcome for answer in output.answers] == ["10.0.0.1 a.b", "10.0.0.2 a.b"]


def test_a_container_that_hangs_is_removed(capsys: pytest.CaptureFixture[str]) -> None:
    """Docker's command alone would be killed, and the container left running."""
    calls: list[tuple[str, ...]] = []

    def ask(*argv: str, seconds: float) -> tuple[int, str, str]:
        calls.append(argv)
        assert seconds > 0
        return 124, "", "it did not end"

    container_gpus.main({"gpu_image": "cuda:1"}, 5.0, ask)
    assert parse_container_gpus(capsys.readouterr().out).code == 124
    run, removal = calls
    assert run[:2] == ("docker", "run")
    assert removal == ("docker", "rm", "--force", run[run.index("--name") + 1])
    assert run[run.index("--pull") + 1] == "never"


@pytest.mark.parametrize(
    ("inspected", "daemon", "absent"), [(1, 0, True), (0, 0, False), (1, 1, False), (124, 0, False)]
)
def test_an_absent_image_is_a_case_of_its_own(
    inspected: int, daemon: int, absent: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """By Docker's exit codes, whatever its error output is: only a running daemon can lack the image."""

    def ask(*argv: str, seconds: float) -> tuple[int, str, str]:
        assert seconds > 0
        return {"run": 125, "image": inspected, "ps": daemon}[argv[1]], "", "a complaint"

    container_gpus.main({"gpu_image": "cuda:1"}, 5.0, ask)
    assert parse_container_gpus(capsys.readouterr().out).image_absent is absent


def test_docker_is_not_asked_for_unwanted_containers(capsys: pytest.CaptureFixture[str]) -> None:
    """A site without containers and image needs no Docker for that."""
    container_gpus.main({}, 5.0, never)
    assert parse_container_gpus(capsys.readouterr().out).image == ""
    containers.main({}, never)
    assert parse_containers(capsys.readouterr().out) == ((), ())


def never(*argv: str, **_more: float) -> tuple[int, str, str]:
    raise AssertionError(argv)


def test_only_the_wanted_containers_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """Others are the users' own; what Docker complains of is passed on."""
    rows = [{"Names": name, "State": "running", "Status": "Up 3 hours", "Labels": "secret"} for name in ("a", "b")]
    message = "".join(f"{json.dumps(row)}\n" for row in rows)
    assert containers.main({"containers": ["b"]}, lambda *_: (0, message, "")) == 0
    out = capsys.readouterr().out
    assert "secret" not in out
    assert [one.name for one in parse_containers(out)[1]] == ["b"]
    assert containers.main({"containers": ["b"]}, lambda *_: (1, "", "no daemon")) == 1


def test_the_driver_and_the_iommu_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file as it is, and one line for each group."""
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550\n")
    (tmp_path / "sys/kernel/iommu_groups/7").mkdir(parents=True)
    (tmp_path / "sys/kernel/iommu_groups/7/type").write_text("identity\n")
    gpu_sharing.main(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("kernel ")
    assert lines[1:] == [
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550",
        "/sys/kernel/iommu_groups/7/type identity",
    ]


@pytest.mark.parametrize(
    ("check", "probe", "text"),
    [
        ("docker_gpu", "container_gpus", '{"image": "", "code": 0, "output": "", "complaint": ""}'),
        ("monitoring_containers", "containers", '{"wanted": [], "containers": []}'),
        ("dns", "name_answers", '{"wanted": [], "servers": [], "answers": []}'),
    ],
)
def test_what_the_site_does_not_want_is_not_applicable(check: str, probe: str, text: str) -> None:
    """The finding reports it; it does not pass."""
    (finding,) = CHECKS[check].findings(readings(**{probe: result(probe, text)}), expected())
    assert finding.verdict is Verdict.NOT_APPLICABLE
    assert finding.cause


def test_a_host_unlike_most_of_its_batch_is_reported() -> None:
    """From three hosts on, and only where more than half agree."""
    same = {"release": "Ubuntu 22.04", "kernel": "5.15"}
    hosts = {"a": same, "b": same, "c": {**same, "kernel": "6.8"}}
    ((host, (finding,)),) = unlike(hosts).items()
    assert (host, finding.verdict, finding.measured, finding.expected) == ("c", Verdict.WARN, "6.8", "5.15")
    assert unlike({"a": same, "c": hosts["c"]}) == {}
    assert unlike({"a": same, "b": {"kernel": "1"}, "c": {"kernel": "2"}, "d": {}}) == {}


def test_what_was_not_measured_is_not_compared() -> None:
    """The check reports that it is missing."""
    assert traits(readings())["kernel"] == "6.1.0-28-amd64"
    assert set(traits(readings(host_os=result("host_os", "oops")))) == {"RDMA drivers"}
    assert traits(readings(host_os=result("host_os", "oops"), rdma_stack=result("rdma_stack", "oops"))) == {}


@pytest.mark.parametrize(("probe", "words"), [("ibstat", "role ib_tools"), ("turbostat", "role burnin_tools")])
def test_a_missing_tool_is_reported_with_its_package(probe: str, words: str) -> None:
    """The role that does."""
    without = readings(**{probe: result(probe, "", rc=None, status=Status.MISSING)})
    with pytest.raises(UnmeasuredError, match="not installed on the node") as caught:
        without.text(PROBES[probe])
    assert words in caught.value.remedy


@needs_checkout
def test_the_roles_that_bring_tools_are_there() -> None:
    """None was renamed, and all probes that run one tool name one role."""
    roles: dict[str, set[str]] = {}
    for probe in PROBES.values():
        roles.setdefault(probe.argv[0], set()).add(probe.role)
    assert all((ROOT / "roles" / role / "tasks").is_dir() for role in set().union(*roles.values()) - {""})
    assert [tool for tool, named in roles.items() if len(named) > 1] == []
    assert roles["dmidecode"] == {"base"}
