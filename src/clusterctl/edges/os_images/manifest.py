"""What lies beside an image or a deployer and says what it is."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

import pydantic

from clusterctl.fleet.errors import ParseError

_DIGEST = r"^[0-9a-f]{64}$"


class _Manifest(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="ignore")

    def to_bytes(self) -> bytes:
        return f"{self.model_dump_json(indent=2)}\n".encode()


class ImageManifest(_Manifest):
    """Of `rootfs.tar.zst`: `digest` is its SHA-256, `size` its bytes, `kernel` the release that it boots
    (`6.1.0-56-amd64`), `packages` how many are installed, `recipe` the digest of what it was built from, `built` UTC.
    """

    name: str
    digest: str = pydantic.Field(pattern=_DIGEST)
    size: int = pydantic.Field(gt=0)
    os: str
    kernel: str
    built: datetime
    packages: int
    small: bool = False
    recipe: str


class DeployerManifest(_Manifest):
    """Of `vmlinuz` and `initrd`: `digest` is the SHA-256 over both, in this order; `size` the bytes of both."""

    digest: str = pydantic.Field(pattern=_DIGEST)
    size: int = pydantic.Field(gt=0)
    os: str
    kernel: str
    built: datetime
    modules: int
    recipe: str


def read_image(text: bytes, where: str) -> ImageManifest:
    """Raises `ParseError` where it is none."""
    return _read(ImageManifest, text, where)


def read_deployer(text: bytes, where: str) -> DeployerManifest:
    """Raises `ParseError` where it is none."""
    return _read(DeployerManifest, text, where)


_M = TypeVar("_M", bound=_Manifest)


def _read(kind: type[_M], text: bytes, where: str) -> _M:
    try:
        return kind.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise ParseError(f"not understood: {field} {first['msg']}".replace("  ", " "), where=where) from None
