"""When the certificates of BMCs expire, as last seen: `state/bmc_certificates.json`, for metrics and `doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from clusterctl.edges.disk import disk_explained, write_over
from clusterctl.fleet.bmc.certificates import SeenCertificate
from clusterctl.fleet.errors import EnvironmentBrokenError

FILE = "bmc_certificates.json"

_ADAPTER = TypeAdapter(dict[str, SeenCertificate])


def read_certificates(state: Path) -> Mapping[str, SeenCertificate]:
    """Return what was last seen, by node; empty before the first look. Raise `EnvironmentBrokenError` otherwise."""
    file = state / FILE
    try:
        with disk_explained("the record of certificates cannot be read", file):
            return _ADAPTER.validate_json(file.read_bytes()) if file.exists() else {}
    except ValidationError:
        remedy = "remove it: clusterctl bmc certificates check writes it again"
        raise EnvironmentBrokenError("it is no record of certificates", where=str(file), remedy=remedy) from None


def write_certificates(state: Path, seen: Mapping[str, SeenCertificate], listed: frozenset[str]) -> None:
    """Add to the record; nodes that are not `listed` any more leave it."""
    known = {name: one for name, one in read_certificates(state).items() if name in listed}
    write_over(state / FILE, _ADAPTER.dump_json({**known, **seen}))
