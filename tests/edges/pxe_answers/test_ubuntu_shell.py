"""What runs inside Ubuntu's installer."""

from __future__ import annotations

import random
from pathlib import Path

import yaml

from clusterctl.edges.pxe.answers import ubuntu
from tests.edges.pxe_answers.installers import Installer, installer
from tests.edges.pxe_answers.jobs import job
from tests.edges.pxe_answers.programs import KEY, as_subiquity_writes_it, ubuntu_program
from tests.edges.pxe_answers.service import HANG_UP, serving


def test_finish_puts_the_site_s_network_in_place_of_the_installer_s(live_server: Installer) -> None:
    """One netplan file, for root only; SSH host keys of the image are gone; the key is reported, then done."""
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


def test_a_lost_answer_to_done_is_not_a_failure(live_server: Installer) -> None:
    """The attempt is over with the first `done` that arrives: the second finds none. One that never arrived fails."""
    for answers, ended in (([(HANG_UP, ""), (404, "")], 0), ([(404, "")], 1)):
        with serving({"POST done": answers}) as service:
            assert live_server.run(ubuntu_program(service, live_server.folder), "finish").returncode == ended


def test_an_error_posts_the_logs_then_the_reason_and_switches_off(live_server: Installer) -> None:
    """The last error of subiquity's own log is the reason."""
    logs = live_server.folder / "log" / "installer"
    logs.mkdir(parents=True)
    (logs / "subiquity-server-debug.log").write_text("DEBUG fine\nERROR root:39 top level error\nDEBUG bye\n")
    with serving({}) as service:
        live_server.run(ubuntu_program(service, live_server.folder), "failed", LOGS=str(logs))
    assert (service.paths(), live_server.done("power")) == (["log", "failed"], [""])
    assert service.posted("log")[0][:2] == b"\x1f\x8b"
    assert service.posted("failed") == [b"subiquity stopped: ERROR root:39 top level error\n"]


def test_of_logs_that_are_too_long_the_end_is_reported(live_server: Installer) -> None:
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


def test_the_commands_as_rendered_do_it(shell: str, tmp_path: Path) -> None:
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
