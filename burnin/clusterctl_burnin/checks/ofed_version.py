"""ofed_version: the RDMA drivers and libraries are those of the site, of one source, and the next boot loads the same.

NVIDIA's OFED, or the distribution's own mlx5_core and rdma-core (`checks.ofed`: a release, or `inbox`). Libraries of
one source with the kernel module of another one work for some programs only. A module that the next boot replaces has
not been tested. Nodes that differ from most of their batch get a warning.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.sku import adapter_family
from clusterctl.formats.infiniband.rdma_stack import LoadedModule, RdmaStack, parse_rdma_stack
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

STACK = Probe("rdma_stack", ("rdma-stack",), timeout=30.0)
NAME = "ofed_version"
INBOX = "inbox"
_OF_NVIDIA = ("ConnectX", "BlueField", "MCX", "MT4")
_REINSTALL = "install the RDMA drivers again (clusterctl configure, role ofed), reboot, and run the burn-in again"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    if not expected.sku.hca_count or not adapter_family(expected.sku.hca_model).startswith(_OF_NVIDIA):
        yield not_applicable(NAME, "the SKU has no adapter of NVIDIA")
        return
    stack = parse_rdma_stack(readings.text(STACK))
    if stack.module is None:
        raise UnmeasuredError("the module mlx5_core is not loaded", remedy="load it (modprobe mlx5_core), or reboot")
    bad = [*_unlike_site(stack), *_mixed(stack, stack.module), *_replaced(stack.module)]
    yield from bad
    if not bad:
        yield passed(NAME, "drivers and libraries are of one source", measured=described(stack), expected=stack.wanted)


def described(stack: RdmaStack) -> str:
    """Return what is compared between nodes: OFED's release or `inbox`, and the versions of module and libraries."""
    module = (stack.module.version if stack.module else None) or "of the kernel"
    source = f"OFED {stack.release}" if stack.release else INBOX
    return f"{source}, mlx5_core {module}, libraries {stack.libraries or 'of an unknown version'}"


def _unlike_site(stack: RdmaStack) -> Iterator[Finding]:
    found = stack.release or INBOX
    if stack.wanted and not (found == stack.wanted or found.startswith(f"{stack.wanted}.")):
        yield _finding(Code.OFED_VERSION, "the RDMA drivers are not those that the site requires", found, stack.wanted)


def _mixed(stack: RdmaStack, module: LoadedModule) -> Iterator[Finding]:
    """Yield a kernel module, and libraries, that are of another source than the OFED that is installed."""
    if stack.release and not _same_release(stack.release, module.version):
        cause = f"OFED {stack.release} is installed, and the kernel runs another mlx5_core"
        yield _finding(Code.RDMA_STACK_MIXED, cause, module.version or "of the kernel", stack.release)
        return
    of_ofed = "mlnx" in stack.libraries
    if stack.libraries and of_ofed != bool(stack.release):
        cause = "the RDMA libraries and drivers are of different sources"
        wanted = f"of OFED {stack.release}" if stack.release else "of the distribution"
        yield _finding(Code.RDMA_STACK_MIXED, cause, stack.libraries, wanted)


def _same_release(release: str, version: str | None) -> bool:
    """Return whether the module's version (24.10-2.1.8) is that of the release (24.10-2.1.8.0)."""
    return version is not None and (f"{release}.".startswith(f"{version}.") or f"{version}.".startswith(f"{release}."))


def _replaced(module: LoadedModule) -> Iterator[Finding]:
    if module.source and module.next_source and module.source != module.next_source:
        yield Finding(
            check=NAME,
            verdict=Verdict.FAIL,
            code=Code.RDMA_MODULE_REPLACED,
            cause="the next boot loads another mlx5_core than the one that runs",
            measured=f"source version {module.source}",
            expected=f"source version {module.next_source}",
            remedy="reboot the node and run the burn-in again",
        )


def _finding(code: Code, cause: str, measured: str, expected: str) -> Finding:
    return Finding(
        check=NAME,
        verdict=Verdict.FAIL,
        code=code,
        cause=cause,
        measured=measured,
        expected=expected,
        remedy=_REINSTALL,
    )


CHECK = Check(NAME, (STACK,), _judge, area=Area.INFINIBAND, causes=(Cause("hca_count", unmeasured=True),))
