"""The document of the node's built-in `rdma-stack`: NVIDIA's OFED or the distribution's own drivers and libraries.

`ofed_info -s` prints `MLNX_OFED_LINUX-23.10-5.1.4.0:`, or `OFED-internal-25.01-0.6.0:` for DOCA-OFED. The version of
OFED's mlx5_core is that release without its last number or two (`24.10-2.1.8`); the libraries of OFED have `mlnx` in
their version (`2410mlnx54-1.2410068`), those of a distribution that of rdma-core (`50.0-2build2`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import read_document

_WHERE = "rdma-stack"
_RELEASE = re.compile(r"(?:MLNX_OFED_LINUX|OFED-internal|MLNX_EN|doca-ofed)-(?P<release>\d[\w.-]*?):?")


@dataclass(frozen=True, slots=True)
class LoadedModule:
    """mlx5_core as it runs. `version`: None for a kernel's own one since Linux 5.17. `source`, `next_source`: source
    versions of the module that runs, and of the one that the next boot loads; None where unknown.
    """

    version: str | None
    source: str | None
    next_source: str | None


@dataclass(frozen=True, slots=True)
class RdmaStack:
    """`wanted`: the OFED that the site requires, `inbox` for none, empty for no requirement.

    `release`: of the installed OFED, empty for none. `libraries`: the version of ibverbs-providers, libibverbs or
    rdma-core, empty where the package manager knows none of them.
    """

    wanted: str
    release: str
    module: LoadedModule | None
    libraries: str


@dataclass(frozen=True, slots=True)
class _Document:
    wanted: str
    ofed: str | None
    module: LoadedModule | None
    packages: dict[str, str]


def parse_rdma_stack(text: str) -> RdmaStack:
    """Return the stack. Raises `ParseError` for another document, or another form of OFED's release."""
    document = read_document(_Document, text, _WHERE)
    release = _RELEASE.fullmatch(document.ofed) if document.ofed is not None else None
    if document.ofed is not None and release is None:
        raise ParseError(f"{document.ofed[:60]!r} is no release of OFED", where=f"{_WHERE} ofed_info -s")
    names = ("ibverbs-providers", "libibverbs", "rdma-core")
    libraries = next((document.packages[name] for name in names if name in document.packages), "")
    return RdmaStack(document.wanted, release["release"] if release else "", document.module, libraries)
