"""What the role zfs_pool has promised of a host: `/etc/clusterctl/zfs_pool.json`."""

from __future__ import annotations

from dataclasses import dataclass

import pydantic

from clusterctl.fleet.errors import ParseError

RECORD = "/etc/clusterctl/zfs_pool.json"


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """The pool's name, and where its file system is mounted."""

    pool: str
    mountpoint: str


class _Document(pydantic.BaseModel):
    pool: str = pydantic.Field(min_length=1)
    mountpoint: str = pydantic.Field(pattern="^/.")


def parse_pool_record(text: str) -> PoolRecord | None:
    """Read the file's content, or `null` for a host that has none. Raises `ParseError` for anything else."""
    if text.strip() == "null":
        return None
    try:
        document = _Document.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise ParseError(f"not understood: {field} {first['msg']}".replace("  ", " "), where=RECORD) from None
    return PoolRecord(document.pool, document.mountpoint)
