"""Before anything is written: the machine reports itself, and gets its drive, or is refused."""

from __future__ import annotations

import time

import yaml

from clusterctl.edges.pxe.answers import ubuntu
from tests.edges.pxe_answers.installers import Installer
from tests.edges.pxe_answers.jobs import job
from tests.edges.pxe_answers.programs import as_subiquity_writes_it, debian_program, ubuntu_program
from tests.edges.pxe_answers.service import HANG_UP, Service, serving


def test_a_machine_that_is_accepted_sets_its_clock_and_names_the_ordered_drive(machine: Installer) -> None:
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


def test_a_machine_that_is_refused_is_switched_off_and_writes_nothing(machine: Installer) -> None:
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
    assert service.posted("failed") == [b"refused: another serial\n"]


def test_a_service_that_is_restarted_meanwhile_is_asked_again(machine: Installer) -> None:
    """A connection that ends without an answer, and 503: neither is a refusal."""
    answers = {
        "GET probe.sh": [(HANG_UP, ""), (503, ""), (200, machine.probe)],
        "POST report": [(HANG_UP, ""), (503, ""), (200, machine.accepted)],
    }
    with serving(answers) as service:
        ended = machine.run(debian_program(service, machine.folder), "accept")
    assert (ended.returncode, len(service.posted("report"))) == (0, 3), ended.stderr
    assert len(set(service.posted("report"))) == 1


def test_a_service_that_is_not_there_yet_is_waited_for(machine: Installer) -> None:
    """Refused connections do not end the install; it goes on as soon as a server listens."""
    (machine.bin / "sleep").unlink()
    (machine.bin / "sleep").write_text(f"#!/bin/sh\necho >> {machine.folder}/slept\n/bin/sleep 0.1\n")
    (machine.bin / "sleep").chmod(0o755)
    service = Service({"GET probe.sh": [(200, machine.probe)], "POST report": [(200, machine.accepted)]})
    script = machine.folder / "install.sh"
    script.write_text(debian_program(service, machine.folder))
    running = machine.popen(str(script), "accept", TRIES="100000")
    deadline = time.monotonic() + 600
    while not machine.done("slept") and time.monotonic() < deadline:
        time.sleep(0.05)
    service.open()
    assert running.wait(timeout=120) == 0
    service.server.shutdown()
    service.server.server_close()
    assert machine.done("clock") == ["1767225600"]


def test_a_drive_that_the_machine_does_not_see_is_never_taken(bookworm: Installer) -> None:
    """Also where the service has it so: what it was not shown, it cannot know."""
    reported = "root=/dev/sdz\ntime=1767225600\n"
    answers = {"GET probe.sh": [(200, bookworm.probe)], "POST report": [(200, reported)]}
    with serving(answers) as service:
        ended = bookworm.run(debian_program(service, bookworm.folder), "accept", SYSLOG="/dev/null")
    assert (ended.returncode, bookworm.done("debconf"), bookworm.done("power")) == (1, [], [""])
    assert b"/dev/sdz" in service.posted("failed")[0]


def test_silence_for_all_that_time_is_no_permission(bookworm: Installer) -> None:
    """After the last attempt the install stops."""
    answers = {"GET probe.sh": [(200, bookworm.probe)], "POST report": [(503, "")]}
    with serving(answers) as service:
        ended = bookworm.run(debian_program(service, bookworm.folder), "accept", TRIES="2", SYSLOG="/dev/null")
    assert (ended.returncode, len(service.posted("report")), bookworm.done("debconf")) == (1, 2, [])
