"""root_writable: the root file system is mounted for writing, and takes a file."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.mounts import Mount, parse_findmnt
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

MOUNT = Probe("root_mount", ("findmnt", "--json", "--output", "TARGET,SOURCE,FSTYPE,OPTIONS", "/"))
_TRY = """
trial() { file=$(mktemp /.write-test-XXXXXXXX) && head -c 4096 /dev/zero >"$file" && sync "$file" && rm "$file"; }
if why=$(trial 2>&1); then echo written; else echo "refused: $why"; fi
"""
WRITE = Probe("root_write", ("sh", "-c", _TRY))
_NAME = "root_writable"
_REMEDY = (
    "the kernel turns a file system read-only when its disk fails: look for I/O errors in dmesg and in smartctl -a of "
    "the disk; replace it if it has any, else reboot the node, which checks the file system"
)


def _judge(readings: Readings, _expected: Expected) -> Iterator[Finding]:
    root = _root(parse_findmnt(readings.text(MOUNT)))
    refused = _refused(readings.text(WRITE))
    how = f"{root.source} ({root.filesystem})"
    if "ro" in root.options:
        cause = f"the root file system {how} is mounted read-only"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.MOUNTED_READ_ONLY,
            cause=cause,
            measured="ro",
            expected="rw",
            remedy=_REMEDY,
        )
    elif refused:
        cause = f"the root file system {how} takes no file: {refused}"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.NOT_WRITABLE,
            cause=cause,
            measured="not written",
            expected="written",
            remedy=_REMEDY,
            deterministic=False,
        )
    else:
        yield passed(_NAME, f"the root file system {how} takes a file", measured="rw", expected="rw")


def _refused(text: str) -> str:
    """Return why no file could be written; empty where one was."""
    output = text.strip()
    if output == "written":
        return ""
    if not output.startswith("refused: "):
        raise ParseError(f"neither written nor refused: {output[:100]!r}", where="the test of writing")
    return output.removeprefix("refused: ").splitlines()[0]


def _root(mounts: tuple[Mount, ...]) -> Mount:
    roots = [mount for mount in mounts if mount.target == "/"]
    if not roots:
        raise UnmeasuredError("findmnt does not show a root file system", remedy="read its output in the evidence")
    return roots[-1]


CHECK = Check(_NAME, (MOUNT, WRITE), _judge, area=Area.NODE, causes=(Cause("identity"),))
