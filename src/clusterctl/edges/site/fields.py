"""Kinds of fields that a site file has in many places: names, figures, secrets by reference, fingerprints."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from clusterctl.formats.certificate_pin import parse_pin


class Strict(BaseModel):
    """Frozen, and nothing but the named fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def shaped(pattern: str, words: str) -> Callable[[str], str]:
    """A validator that says in words what a text must look like."""
    shape = re.compile(pattern)

    def check(value: str) -> str:
        if not shape.fullmatch(value):
            raise ValueError(f"must be {words}")
        return value

    return check


Name = Annotated[
    str,
    AfterValidator(
        shaped(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "a host name: lower-case letters, digits and dashes, 63 at most")
    ),
]
FileName = Annotated[
    str,
    AfterValidator(shaped(r"[A-Za-z0-9][\w.-]{0,99}", "the name of a file, without folders: letters, digits, - _ .")),
]
UserName = Annotated[str, AfterValidator(shaped(r"[a-z_][a-z0-9_-]{0,31}", "a user name of a Linux host"))]
Words = Annotated[str, AfterValidator(shaped(r"(?s).*\S.*", "filled in"))]
Series = Annotated[
    str, AfterValidator(shaped(r"[a-z][a-z0-9_/-]{2,59}", "a release by its code name, such as jammy or noble"))
]
Count = Annotated[int, Field(ge=0, le=100_000, strict=True)]
Positive = Annotated[int, Field(ge=1, le=100_000, strict=True)]


class SecretRef(Strict):
    """Where a secret is kept; never the secret itself. Exactly one of the three."""

    env: str | None = None
    file: str | None = None
    vault: str | None = Field(None, description="an ansible-vault encrypted file")
    vault_password_file: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _no_plain_text(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError(  # noqa: TRY004 — pydantic turns a ValueError into a field error
                "a secret never stands in this file: write {env: NAME}, {file: PATH} or {vault: PATH}"
            )
        return value

    @model_validator(mode="after")
    def _exactly_one(self) -> SecretRef:
        if sum(ref is not None for ref in (self.env, self.file, self.vault)) != 1:
            raise ValueError("give exactly one of env, file, vault")
        if self.vault is not None and self.vault_password_file is None:
            raise ValueError("vault needs vault_password_file")
        return self


def _hidden(value: Any) -> Any:
    """A secret written in the wrong place must not be repeated in the error message."""
    return value if isinstance(value, dict) else object()


Secret = Annotated[SecretRef, BeforeValidator(_hidden)]


def _no_fingerprint_or_one(value: str) -> str:
    return parse_pin(value) if value else ""


Fingerprint = Annotated[
    str, AfterValidator(_no_fingerprint_or_one), Field(description="SHA-256 of a certificate, with or without colons")
]
