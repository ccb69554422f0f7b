"""What runs inside debian-installer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from clusterctl.edges.pxe.answers import ReleaseSeries, debian
from tests.edges.pxe_answers.installers import DISK_BYTES, Installer, installer
from tests.edges.pxe_answers.jobs import job
from tests.edges.pxe_answers.programs import KEY, debian_program, wait_until
from tests.edges.pxe_answers.service import HANG_UP, Service, serving


def test_the_ordered_drive_is_named_to_partman_and_holds_nothing_to_assemble(bookworm: Installer) -> None:
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


def test_progress_is_reported_and_a_failed_step_ends_the_install(bookworm: Installer) -> None:
    """debian-installer would wait at the console: the log is kept, the failure reported, the power cut."""
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


def test_a_clock_that_may_be_right_is_left_alone_until_the_service_gives_the_time(bookworm: Installer) -> None:
    """The answers were written some minutes ago: a clock that is a little ahead of them is no wrong one."""
    now = datetime.now(UTC)
    syslog = bookworm.folder / "syslog"
    syslog.write_text("main-menu[1]: WARNING **: Menu item 'netcfg' failed.\n")
    with serving({}) as service:
        for written in (now - timedelta(minutes=20), now - timedelta(days=2), now + timedelta(days=400)):
            program = debian_program(service, bookworm.folder, time=written)
            bookworm.run(program, "begin", SYSLOG=str(syslog))
        wait_until(lambda: len(bookworm.done("power")) == 3)
    written = [str(int((now + timedelta(days=days)).timestamp())) for days in (-2, 400)]
    assert bookworm.done("clock") == written


def test_an_installer_that_waits_at_the_console_is_ended(bookworm: Installer) -> None:
    """A question that no answer was prepared for: nothing is logged any more, and the last log line has the reason."""
    syslog = bookworm.folder / "syslog"
    syslog.write_text("Jan  1 00:00:00 net-retriever: error: no such file\n")
    with serving({}) as service:
        bookworm.run(debian_program(service, bookworm.folder), "begin", SYSLOG=str(syslog), QUIET="5")
        wait_until(lambda: bookworm.done("power"))
    assert service.posted("failed")[0].endswith(b"net-retriever: error: no such file\n")
    assert service.posted("log")[0] == syslog.read_bytes()


def test_finish_leaves_a_login_and_reports_the_host_key(bookworm: Installer) -> None:
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


def test_the_preseed_s_first_command_takes_the_program_out_of_the_file(shell: str, tmp_path: Path) -> None:
    """What is carried in comments comes out letter for letter, and begins to run."""
    machine = installer(tmp_path, shell, "wget")
    service = Service()
    given = job(ReleaseSeries.BOOKWORM, server=service.url, attempt=service.attempt)
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
