"""mounts: each mount of fstab is there and writable; mounts that fstab does not have are ignored."""

from __future__ import annotations

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.formats.host.mounts import parse_mount_table
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import Edit, expected, readings


def found(**edits: Edit) -> tuple[Finding, ...]:
    return CHECKS["mounts"].findings(readings(**edits), expected())


def without(word: str) -> Edit:
    return lambda text: "".join(line for line in text.splitlines(keepends=True) if word not in line)


def test_a_file_system_that_is_not_mounted_is_reported_by_its_place() -> None:
    """`nofail` kept the boot quiet."""
    (finding,) = found(mounts=without("/scratch"))
    assert (finding.verdict, finding.subject) == (Verdict.FAIL, "/scratch")
    assert finding.cause == "UUID=0c2c4b5e-8d3e-4d0e-9f0d-0b6c5a3c7e11 (xfs) of /etc/fstab is not mounted"
    assert "mount /scratch" in finding.remedy


def test_a_file_system_that_became_read_only_is_reported() -> None:
    """Unless fstab asks for that."""
    turned: Edit = lambda text: text.replace("/scratch xfs rw", "/scratch xfs ro")  # noqa: E731
    (finding,) = found(mounts=turned)
    assert (finding.verdict, finding.measured) == (Verdict.FAIL, "ro")
    (finding,) = found(mounts=turned, fstab=lambda text: text.replace("defaults,nofail", "ro,nofail"))
    assert finding.verdict is Verdict.PASS


def test_the_last_mount_at_a_place_is_the_one_that_is_seen() -> None:
    """A mount covers what was mounted there before."""
    (finding,) = found(mounts=lambda text: f"{text}/dev/md1 /scratch xfs ro 0 0\n")
    assert finding.verdict is Verdict.FAIL


def test_a_list_without_a_root_is_no_list() -> None:
    """Nothing is called missing on its word."""
    assert [finding.verdict for finding in found(mounts=without(" / "))] == [Verdict.INCONCLUSIVE]


def test_entries_are_read_as_the_manual_has_them() -> None:
    """Blanks in octal, a slash too many, no options, tabs, comments."""
    text = "# mounts\n\nLABEL=a\\040b\t/mnt/my\\040disk/ ext4\n//srv/x /x/ cifs ro,soft 0 0\n"
    first, second = parse_mount_table(text, where="fstab")
    assert (first.source, first.target, first.options) == ("LABEL=a b", "/mnt/my disk", frozenset({"defaults"}))
    assert (second.target, second.options) == ("/x", frozenset({"ro", "soft"}))


@pytest.mark.parametrize("line", ["/dev/sda1 /", "/dev/sda1 relative ext4 rw 0 0", "a /b c d e f g"])
def test_a_line_that_is_no_entry_is_refused_by_number(line: str) -> None:
    """Not skipped: what stands there was meant."""
    with pytest.raises(ParseError) as error:
        parse_mount_table(f"# fine\n{line}\n", where="/etc/fstab")
    assert error.value.where == "/etc/fstab line 2"
