"""Debian's preseed: what is rendered, and that debconf takes it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from clusterctl.edges.pxe.answers import AnswerJob, ReleaseSeries, debian, network_files
from tests.edges.pxe_answers.jobs import job
from tests.formats.host_networks import NETWORKS

GOLDENS = Path(__file__).parent / "data"


def site(network: str) -> AnswerJob:
    return job(
        ReleaseSeries.BOOKWORM,
        mirror="https://10.9.0.1/debian/",
        proxy="http://10.9.0.1:3142",
        time_servers=("10.9.0.1",),
        packages=("nvme-cli",),
        files=network_files(NETWORKS[network], ReleaseSeries.BOOKWORM),
    )


JOBS = {
    "bookworm-dhcp": job(ReleaseSeries.BOOKWORM),
    "bookworm-static": site("static"),
    "bookworm-bonded": site("bonded"),
    "bookworm-root": job(ReleaseSeries.BOOKWORM, user="root"),
}


def answers(given: AnswerJob) -> dict[str, str]:
    lines = [line.split(maxsplit=3) for line in debian.preseed(given).splitlines() if line.startswith("d-i ")]
    return {words[1]: words[3] if len(words) > 3 else "" for words in lines}


@pytest.mark.parametrize("name", ["bookworm-dhcp", "bookworm-static", "bookworm-bonded"])
def test_what_is_rendered_is_the_golden(name: str) -> None:
    """To the letter."""
    assert debian.preseed(JOBS[name]) == (GOLDENS / f"{name}.preseed").read_text()


@pytest.mark.parametrize("name", JOBS)
def test_debconf_takes_it(name: str, tmp_path: Path) -> None:
    """By Debian's own checker, which knows the form of a line and the types of questions."""
    checker = shutil.which("debconf-set-selections")
    if checker is None:
        pytest.skip("no debconf here")
    path = tmp_path / "preseed.cfg"
    path.write_text(debian.preseed(JOBS[name]))
    ended = subprocess.run([checker, "-c", str(path)], capture_output=True, text=True, timeout=600, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_no_drive_is_named_in_advance() -> None:
    """The service names it, once it has seen what the machine sees; nothing of partman's own choosing is answered."""
    given = answers(job(ReleaseSeries.BOOKWORM))
    assert "partman-auto/disk" not in given
    assert "grub-installer/bootdev" not in given
    assert given["partman/early_command"].endswith(" accept")


def test_no_account_is_given_a_password() -> None:
    """`!` fits none; with a user, root cannot log in at all."""
    user, root = answers(job(ReleaseSeries.BOOKWORM)), answers(job(ReleaseSeries.BOOKWORM, user="root"))
    assert (user["passwd/user-password-crypted"], user["passwd/root-login"]) == ("!", "false")
    assert (root["passwd/root-password-crypted"], root["passwd/make-user"]) == ("!", "false")


def test_the_mirror_is_given_in_parts_and_the_security_host_is_left_alone() -> None:
    """A site with a mirror of its own may have no way out to security.debian.org."""
    own, debians = answers(JOBS["bookworm-static"]), answers(JOBS["bookworm-dhcp"])
    assert (own["mirror/https/hostname"], own["mirror/https/directory"]) == ("10.9.0.1", "/debian")
    assert own["mirror/https/proxy"] == "http://10.9.0.1:3142"
    assert "security" not in own["apt-setup/services-select"]
    assert "security" in debians["apt-setup/services-select"]


def test_the_kernel_arguments_answer_what_is_asked_before_the_file_is_there() -> None:
    """Language, card and name would be questions before the network is up."""
    assert debian.kernel_arguments(job(ReleaseSeries.BOOKWORM)) == (
        "auto=true priority=critical url=http://10.9.0.1:8080/t/0123456789abcdef0123456789abcdef/preseed.cfg "
        "interface={mac} hostname=node001 domain= DEBIAN_FRONTEND=text console=tty0 console=ttyS0"
    )
