"""The shell inside the installers, run for real under the shells and with the tools that they bring."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from clusterctl.edges.pxe.answers import Series, debian, ubuntu
from tests.pxe_answers.installers import DISK_BYTES, Installer, installer
from tests.pxe_answers.jobs import job
from tests.pxe_answers.service import HANG_UP, Service, serving

SHELLS = ("dash", "busybox")
TRANSPORTS = ("curl", "wget")
KEY = b"ssh-ed25519 AAAAkey root@node001\n"


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=TRANSPORTS)
def machine(request: pytest.FixtureRequest, shell: str, tmp_path: Path) -> Installer:
    """Every shell with every way to speak HTTP."""
    return installer(tmp_path, shell, request.param)


@pytest.fixture
def bookworm(tmp_path: Path) -> Installer:
    """As debian-installer is."""
    return installer(tmp_path, "busybox", "wget")


@pytest.fixture
def live_server(tmp_path: Path) -> Installer:
    """As Ubuntu's live server is."""
    return installer(tmp_path, "dash", "curl")


def ubuntu_program(service: Service, folder: Path, **changes: object) -> str:
    program = ubuntu.program(job(server=service.url, attempt=service.attempt, **changes))
    return program.replace(ubuntu.WORK, str(folder / "work"))


def debian_program(service: Service, folder: Path, **changes: object) -> str:
    program = debian.program(job(Series.BOOKWORM, server=service.url, attempt=service.attempt, **changes))
    return program.replace(debian.WORK, str(folder / "work"))


def as_subiquity_writes_it(document: dict[str, object], path: Path) -> None:
    """With the arguments that subiquity gives to PyYAML, in 22.04 as in 24.04."""
    style = {"line_break": "\n", "indent": 4, "explicit_start": True, "explicit_end": True}
    path.write_text(yaml.dump(document, default_flow_style=False, Dumper=yaml.SafeDumper, **style))


class TestAccept:
    def test_a_machine_that_is_accepted_sets_its_clock_and_names_the_told_drive(self, machine: Installer) -> None:
        """The report is the probe's output; the clock is set by the answer; subiquity's second reading finds the drive,
        and nothing else of its answers has changed.
        """
        answers = {"GET probe.sh": [(200, machine.probe)], "POST report": [(200, machine.accepted)]}
        with serving(answers) as service:
            document = ubuntu.autoinstall(job(server=service.url, attempt=service.attempt))
            autoinstall = machine.folder / "autoinstall.yaml"
            as_subiquity_writes_it(document, autoinstall)
            ended = machine.run(ubuntu_program(service, machine.folder), "accept", AUTOINSTALL=str(autoinstall))
        assert (ended.returncode, machine.done("clock"), machine.done("power")) == (0, ["1767225600"], [])
        assert b"disk=" + str(machine.disk).encode() + b"\tROOT1\t" in service.posted("report")[0]
        document["storage"]["config"][0]["match"]["path"] = str(machine.disk)
        assert yaml.safe_load(autoinstall.read_text()) == document

    def test_a_machine_that_is_refused_is_switched_off_and_writes_nothing(self, machine: Installer) -> None:
        """409 is final: asked once, no drive is named, the power goes off, the installer sees a failure."""
        answers = {"GET probe.sh": [(200, machine.probe)], "POST report": [(409, "another serial\n")]}
        with serving(answers) as service:
            autoinstall = machine.folder / "autoinstall.yaml"
            as_subiquity_writes_it(ubuntu.autoinstall(job()), autoinstall)
            before = autoinstall.read_text()
            ended = machine.run(ubuntu_program(service, machine.folder), "accept", AUTOINSTALL=str(autoinstall))
        assert ended.returncode != 0
        assert (machine.done("power"), machine.done("clock"), len(service.posted("report"))) == ([""], [], 1)
        assert autoinstall.read_text() == before
        assert service.posted("failed")[0].startswith(b"refused: ")

    def test_a_service_that_is_restarted_meanwhile_is_asked_again(self, machine: Installer) -> None:
        """A connection that ends without an answer, and 503: neither is a refusal."""
        answers = {
            "GET probe.sh": [(HANG_UP, ""), (503, ""), (200, machine.probe)],
            "POST report": [(HANG_UP, ""), (503, ""), (200, machine.accepted)],
        }
        with serving(answers) as service:
            ended = machine.run(debian_program(service, machine.folder), "accept")
        assert (ended.returncode, len(service.posted("report"))) == (0, 3), ended.stderr
        assert len(set(service.posted("report"))) == 1

    def test_a_service_that_is_not_there_yet_is_waited_for(self, machine: Installer) -> None:
        """Refused connections do not end the install; it goes on as soon as somebody listens."""
        (machine.bin / "sleep").unlink()
        (machine.bin / "sleep").write_text(f"#!/bin/sh\necho >> {machine.folder}/slept\n/bin/sleep 0.1\n")
        (machine.bin / "sleep").chmod(0o755)
        service = Service({"GET probe.sh": [(200, machine.probe)], "POST report": [(200, machine.accepted)]})
        script = machine.folder / "install.sh"
        script.write_text(debian_program(service, machine.folder))
        running = machine.popen(str(script), "accept", TRIES="100000")
        deadline = time.monotonic() + 120
        while not machine.done("slept") and time.monotonic() < deadline:
            time.sleep(0.05)
        service.open()
        assert running.wait(timeout=120) == 0
        service.server.shutdown()
        service.server.server_close()
        assert machine.done("clock") == ["1767225600"]

    def test_a_drive_that_the_machine_does_not_see_is_never_taken(self, bookworm: Installer) -> None:
        """Also where the service says so: what it was not shown, it cannot know."""
        told = "root=/dev/sdz\ntime=1767225600\n"
        answers = {"GET probe.sh": [(200, bookworm.probe)], "POST report": [(200, told)]}
        with serving(answers) as service:
            ended = bookworm.run(debian_program(service, bookworm.folder), "accept", SYSLOG="/dev/null")
        assert (ended.returncode, bookworm.done("debconf"), bookworm.done("power")) == (1, [], [""])
        assert b"/dev/sdz" in service.posted("failed")[0]

    def test_silence_for_all_that_time_is_no_permission(self, bookworm: Installer) -> None:
        """After the last attempt the install stops."""
        answers = {"GET probe.sh": [(200, bookworm.probe)], "POST report": [(503, "")]}
        with serving(answers) as service:
            ended = bookworm.run(debian_program(service, bookworm.folder), "accept", TRIES="2", SYSLOG="/dev/null")
        assert (ended.returncode, len(service.posted("report")), bookworm.done("debconf")) == (1, 2, [])


class TestDebian:
    def test_the_told_drive_is_named_to_partman_and_holds_nothing_to_assemble(self, bookworm: Installer) -> None:
        """Partition table and what stands at the end (GPT's copy, md) are gone, the middle is as it was."""
        answers = {"GET probe.sh": [(200, bookworm.probe)], "POST report": [(200, bookworm.accepted)]}
        with serving(answers) as service:
            ended = bookworm.run(debian_program(service, bookworm.folder), "accept")
        assert ended.returncode == 0
        named = [f"partman-auto/disk {bookworm.disk}", f"grub-installer/bootdev {bookworm.disk}"]
        assert bookworm.done("debconf") == named
        held = bookworm.disk.read_bytes()
        assert held[: 1 << 20].count(0) == 1 << 20
        assert held[DISK_BYTES - (1 << 20) : DISK_BYTES].count(0) == 1 << 20
        assert held[1 << 20 : DISK_BYTES - (1 << 20)].count(0x55) == DISK_BYTES - (2 << 20)

    def test_progress_is_told_and_a_failed_step_ends_the_install(self, bookworm: Installer) -> None:
        """debian-installer would wait for somebody at the console: the log is kept, the failure told, the power cut."""
        syslog = bookworm.folder / "syslog"
        syslog.write_text("Jan  1 00:00:00 main-menu[300]: INFO: Menu item 'partman-base' selected\n")
        failed = "Jan  1 00:00:09 main-menu[300]: WARNING **: Menu item 'bootstrap-base' failed.\n"
        with serving({}) as service:
            bookworm.run(debian_program(service, bookworm.folder), "begin", SYSLOG=str(syslog))
            wait_until(lambda: service.posted("progress"))
            with syslog.open("a") as file:
                file.write(failed)
            wait_until(lambda: bookworm.done("power"))
        assert bookworm.done("clock") == ["1767225600"]
        assert service.posted("progress") == [b"debian-installer: partman-base\n"]
        assert service.posted("failed") == [b"debian-installer: Menu item 'bootstrap-base' failed\n"]
        assert failed.encode() in service.posted("log")[0]

    def test_a_clock_that_may_be_right_is_left_alone_until_the_service_tells_the_time(
        self, bookworm: Installer
    ) -> None:
        """The answers were written some minutes ago: a clock that is a little ahead of them is no wrong one."""
        now = datetime.now(UTC)
        syslog = bookworm.folder / "syslog"
        syslog.write_text("main-menu[1]: WARNING **: Menu item 'netcfg' failed.\n")
        with serving({}) as service:
            for written in (now - timedelta(minutes=20), now - timedelta(days=2), now + timedelta(days=400)):
                program = debian_program(service, bookworm.folder, told_at=written)
                bookworm.run(program, "begin", SYSLOG=str(syslog))
            wait_until(lambda: len(bookworm.done("power")) == 3)
        written = [str(int((now + timedelta(days=days)).timestamp())) for days in (-2, 400)]
        assert bookworm.done("clock") == written

    def test_an_installer_that_waits_for_somebody_is_ended(self, bookworm: Installer) -> None:
        """A question that no answer was prepared for: nothing is logged any more, and the last that was tells why."""
        syslog = bookworm.folder / "syslog"
        syslog.write_text("Jan  1 00:00:00 net-retriever: error: no such file\n")
        with serving({}) as service:
            bookworm.run(debian_program(service, bookworm.folder), "begin", SYSLOG=str(syslog), QUIET="5")
            wait_until(lambda: bookworm.done("power"))
        assert service.posted("failed")[0].endswith(b"net-retriever: error: no such file\n")
        assert service.posted("log")[0] == syslog.read_bytes()

    def test_finish_leaves_a_way_in_and_tells_the_host_key(self, bookworm: Installer) -> None:
        """The key that may log in, no passwords, the network, and the public host key, before `done`."""
        files = {"/etc/systemd/network/10-uplink.network": "[Match]\nName='$HOME' \\n `id`\n"}
        with serving({}) as service:
            ended = bookworm.run(debian_program(service, bookworm.folder, files=files), "finish")
        target = bookworm.folder / "target"
        assert ended.returncode == 0, ended.stderr
        assert service.paths() == ["host-key", "done"]
        assert service.posted("host-key") == [KEY]
        assert (target / "home/ops/.ssh/authorized_keys").read_text() == "ssh-ed25519 AAAAC3Nza controller\n"
        assert (target / "etc/systemd/network/10-uplink.network").read_text() == next(iter(files.values()))
        assert (target / "etc/sudoers.d/90-clusterctl").stat().st_mode & 0o777 == 0o440
        assert "PasswordAuthentication no" in (target / "etc/ssh/sshd_config.d/90-clusterctl.conf").read_text()


class TestUbuntu:
    def test_finish_puts_the_site_s_network_in_place_of_the_installer_s(self, live_server: Installer) -> None:
        """One netplan file, for root only; SSH host keys that came with the image are gone; the key is told, then done."""
        target = live_server.folder / "target"
        (target / "etc/netplan").mkdir()
        (target / "etc/netplan/00-installer-config.yaml").write_text("network: {version: 2}\n")
        (target / "etc/ssh/ssh_host_rsa_key").write_text("from the image\n")
        files = {"/etc/netplan/90-clusterctl.yaml": "network:\n  version: 2\nEND\n"}
        with serving({"POST host-key": [(HANG_UP, ""), (200, "")]}) as service:
            ended = live_server.run(ubuntu_program(service, live_server.folder, files=files), "finish")
        assert (ended.returncode, service.paths()) == (0, ["host-key", "host-key", "done"])
        assert service.posted("host-key") == [KEY, KEY]
        left = list((target / "etc/netplan").iterdir())
        assert [path.name for path in left] == ["90-clusterctl.yaml"]
        assert left[0].read_text() == files["/etc/netplan/90-clusterctl.yaml"]
        assert left[0].stat().st_mode & 0o777 == 0o600
        assert not (target / "etc/ssh/ssh_host_rsa_key").exists()

    def test_a_lost_answer_to_done_is_not_a_failure(self, live_server: Installer) -> None:
        """The attempt is over with the first `done` that is heard: the second finds none. One that was never heard fails."""
        for answers, ended in (([(HANG_UP, ""), (404, "")], 0), ([(404, "")], 1)):
            with serving({"POST done": answers}) as service:
                assert live_server.run(ubuntu_program(service, live_server.folder), "finish").returncode == ended

    def test_an_error_posts_the_logs_then_the_reason_and_switches_off(self, live_server: Installer) -> None:
        """The last error of subiquity's own log is the reason."""
        logs = live_server.folder / "log" / "installer"
        logs.mkdir(parents=True)
        (logs / "subiquity-server-debug.log").write_text("DEBUG fine\nERROR root:39 top level error\nDEBUG bye\n")
        with serving({}) as service:
            live_server.run(ubuntu_program(service, live_server.folder), "failed", LOGS=str(logs))
        assert (service.paths(), live_server.done("power")) == (["log", "failed"], [""])
        assert service.posted("log")[0][:2] == b"\x1f\x8b"
        assert service.posted("failed") == [b"subiquity stopped: ERROR root:39 top level error\n"]

    def test_logs_that_are_too_long_are_told_from_their_ends(self, live_server: Installer) -> None:
        """At most 8 MiB are posted, as text."""
        logs = live_server.folder / "log" / "installer"
        logs.mkdir(parents=True)
        for name in ("curtin-install.log", "subiquity-server-debug.log"):
            (logs / name).write_bytes(random.Random(6).randbytes(6 << 20) + b"\nthe end of " + name.encode())
        with serving({}) as service:
            live_server.run(ubuntu_program(service, live_server.folder), "failed", LOGS=str(logs))
        posted = service.posted("log")[0]
        assert len(posted) <= 8 << 20
        assert b"the end of curtin-install.log" in posted
        assert b"the end of subiquity-server-debug.log" in posted

    def test_the_commands_as_rendered_do_it(self, shell: str, tmp_path: Path) -> None:
        """Not only the program: subiquity runs a string by `sh -c` and a list as it is."""
        machine = installer(tmp_path, shell, "curl")
        answers = {"GET probe.sh": [(200, machine.probe)], "POST report": [(200, machine.accepted)]}
        with serving(answers) as service:
            text = ubuntu.user_data(job(server=service.url, attempt=service.attempt))
            document = yaml.safe_load(text.replace(ubuntu.WORK, str(tmp_path / "work")))["autoinstall"]
            autoinstall = tmp_path / "autoinstall.yaml"
            as_subiquity_writes_it(document, autoinstall)
            first, second = document["early-commands"]
            assert machine.start("-c", first).returncode == 0
            assert (tmp_path / "work" / "install.sh").stat().st_mode & 0o077 == 0
            assert machine.start(*second[1:], AUTOINSTALL=str(autoinstall)).returncode == 0
        assert f"path: {machine.disk}\n" in autoinstall.read_text()


def test_the_preseed_s_first_command_takes_the_program_out_of_the_file(shell: str, tmp_path: Path) -> None:
    """What is carried in comments comes out letter for letter, and begins to run."""
    machine = installer(tmp_path, shell, "wget")
    service = Service()
    given = job(Series.BOOKWORM, server=service.url, attempt=service.attempt)
    work = str(tmp_path / "work")
    text = debian.preseed(given).replace(debian.WORK, work)
    service.answers["GET preseed.cfg"] = [(HANG_UP, ""), (200, text)]
    service.open()
    command = next(line for line in text.splitlines() if "preseed/early_command" in line).split(" string ")[1]
    syslog = tmp_path / "syslog"
    syslog.write_text("main-menu[1]: WARNING **: Menu item 'netcfg' failed.\n")
    machine.start("-c", command, SYSLOG=str(syslog))
    wait_until(lambda: machine.done("power"))
    service.server.shutdown()
    service.server.server_close()
    assert (tmp_path / "work/install.sh").read_text() == debian.program(given).replace(debian.WORK, work)
    assert machine.done("clock") == ["1767225600"]


def wait_until(true: object) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if callable(true) and true():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to that")


@pytest.mark.parametrize("program", [ubuntu.program(job()), debian.program(job(Series.BOOKWORM))])
def test_shellcheck_finds_nothing(program: str, tmp_path: Path) -> None:
    """As POSIX sh; each warning that is left out says why."""
    checker = shutil.which("shellcheck")
    if checker is None:
        pytest.skip("no shellcheck here")
    not_meant = "SC2310,SC2311,SC2312"  # functions in conditions: no `set -e` that they could switch off
    path = tmp_path / "install.sh"
    path.write_text(program)
    argv = [
        checker,
        "-s",
        "sh",
        "-o",
        "all",
        "-e",
        f"{not_meant},SC2249,SC2250",
        str(path),
    ]  # no default case, no braces
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert ended.stdout == ""
