"""disk_usage: space and inodes of each local file system, in the words of GNU df (coreutils 8.32 and 9.1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.linux import parse_df_use
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import expected, healthy_text, readings, result

HEAD = "Type     1B-blocks        Used       Avail   Inodes  IUsed Mounted on\n"


def found(text: str) -> list[tuple[str, Verdict, Code]]:
    judged = CHECKS["disk_usage"].findings(readings(df_use=lambda _: text), expected())
    return [(one.subject, one.verdict, one.code) for one in judged]


def test_a_healthy_node() -> None:
    assert [verdict for _, verdict, _ in found(healthy_text("df_use"))] == [Verdict.PASS]


@pytest.mark.parametrize(
    ("line", "mount", "code"),
    [
        ("ext4 100000 90900 4000 1000 10 /", "/", Code.DISK_FULL),  # 5 % are root's: df shows 96 %
        ("zfs 1000 960 40 5000 10 /tank/docker", "/tank/docker", Code.DISK_FULL),
        ("xfs 1000 100 900 1000 960 /var/lib/docker", "/var/lib/docker", Code.INODES_FULL),
        ("ext4 1000 990 10 1000 999 /mnt/my data", "/mnt/my data", Code.DISK_FULL),
    ],
)
def test_one_that_is_nearly_full(line: str, mount: str, code: Code) -> None:
    """It is named by its mount point, once."""
    assert found(f"{HEAD}{line}\ntmpfs 1000 0 1000 100 1 /run\n") == [(mount, Verdict.FAIL, code)]


@pytest.mark.parametrize(
    "line",
    [
        "ext4 1000 949 51 1000 949 /",
        "btrfs 1000 100 900 - - /",
        "vfat 1000 100 900 0 0 /boot/efi",
        "tmpfs 0 0 0 100 100 /x",
    ],
)
def test_one_that_is_not(line: str) -> None:
    """Just below the limits; without a number of inodes; without any size."""
    assert [verdict for _, verdict, _ in found(f"{HEAD}{line}\ntmpfs 1000 0 1000 100 1 /run\n")] == [Verdict.PASS]


def test_a_mount_that_cannot_be_read_hides_no_full_one() -> None:
    """The tool lists the others and ends with 1: the full one fails; without it, INCONCLUSIVE."""
    error = "df: /mnt/bucket: Transport endpoint is not connected\n"
    for line, verdict in (("ext4 1000 990 10 1000 9 /", Verdict.FAIL), ("ext4 1000 99 900 1000 9 /", None)):
        broken = replace(result("df_use", f"{HEAD}{line}\n", rc=1), stderr=error)
        judged = CHECKS["disk_usage"].findings(readings(df_use=broken), expected())
        assert [one.verdict for one in judged] == [*([verdict] if verdict else []), Verdict.INCONCLUSIVE]
        assert "/mnt/bucket" in judged[-1].cause


def test_an_empty_table_is_no_pass() -> None:
    assert [verdict for _, verdict, _ in found(HEAD)] == [Verdict.INCONCLUSIVE]


@pytest.mark.parametrize("text", ["", "Filesystem 1B-blocks\n", f"{HEAD}ext4 1000 x 1 1 1 /\n", f"{HEAD}ext4 10"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_df_use(text)
