"""os_release: the host runs the OS release and the kernel that the site wants, and will after its next boot.

The release is that of `checks.release`, else the installed one; the kernel is that of `checks.kernel`. Where the site
names no kernel, another one that waits for the next boot is a warning: the drivers were built for the running one.
The comparison of a host with its batch is another finding (`burnin/clusterctl_burnin/alike.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.documents import HostOs, parse_host_os
from clusterctl_burnin.check import Area, Check, Expected
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

HOST_OS = Probe("host_os", ("host-os",))
NAME = "os_release"
_REINSTALL = "install the node again with the release that the site wants, or correct checks.release in site.yml"
_KERNEL = "install and hold that kernel on the node, reboot it, then configure it again; or correct checks.kernel"
_NEXT = (
    "remove the newer kernel and hold the one that runs (role base), or reboot into the newer one and configure the "
    "node again"
)
_GONE = "install the running kernel's package again, or reboot into the one that is installed and configure the node"


def _judge(readings: Readings, _expected: Expected) -> Iterator[Finding]:
    host = parse_host_os(readings.text(HOST_OS))
    if host.os_release is None:
        raise UnmeasuredError("the host has no /etc/os-release", remedy="check which OS is installed on the node")
    release = host.os_release.get("VERSION_CODENAME", "")
    words = host.os_release.get("PRETTY_NAME") or release
    found = [*_release(host, release, words), *_kernel(host)]
    yield from found
    if not found:
        yield passed(
            NAME, _passed(host), measured=f"{words}, Linux {host.kernel}", expected=host.wanted.release or None
        )


def _release(host: HostOs, release: str, words: str) -> Iterator[Finding]:
    wanted = host.wanted.release
    if wanted and not release:
        cause = "its /etc/os-release names no VERSION_CODENAME"
        raise UnmeasuredError(cause, remedy="read /etc/os-release on the node")
    if wanted and release != wanted:
        cause = f"the host runs {words}, not the release that the site wants"
        yield Finding(
            check=NAME,
            verdict=Verdict.FAIL,
            code=Code.WRONG_RELEASE,
            cause=cause,
            measured=release,
            expected=wanted,
            remedy=_REINSTALL,
        )


def _kernel(host: HostOs) -> Iterator[Finding]:
    wanted, coming = host.wanted.kernel, host.next_boot
    if wanted and host.kernel != wanted:
        cause = "the host does not run the kernel that the site wants"
        yield Finding(
            check=NAME,
            verdict=Verdict.FAIL,
            code=Code.WRONG_KERNEL,
            cause=cause,
            measured=host.kernel,
            expected=wanted,
            remedy=_KERNEL,
        )
    elif coming and coming != host.kernel:
        cause = "the next boot starts another kernel than the running one, for which the drivers were built"
        yield Finding(
            check=NAME,
            verdict=Verdict.WARN,
            code=Code.NEXT_KERNEL_DIFFERS,
            cause=cause,
            measured=coming,
            expected=host.kernel,
            remedy=_NEXT,
        )
    elif host.installed and host.kernel not in host.installed:
        cause = "the running kernel is no longer installed, so its modules cannot be loaded"
        yield Finding(
            check=NAME,
            verdict=Verdict.WARN,
            code=Code.KERNEL_REMOVED,
            cause=cause,
            measured=", ".join(host.installed),
            expected=host.kernel,
            remedy=_GONE,
        )


def _passed(host: HostOs) -> str:
    wanted = [word for word, version in (("release", host.wanted.release), ("kernel", host.wanted.kernel)) if version]
    return f"the host runs the {' and '.join(wanted)} that the site wants" if wanted else "the site names no release"


CHECK = Check(NAME, (HOST_OS,), _judge, area=Area.SYSTEM)
