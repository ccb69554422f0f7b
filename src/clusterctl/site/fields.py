"""Field types that many sections of a site share: names, counts, secrets by reference, certificate fingerprints."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, dataclass_transform

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from clusterctl.formats.certificate_pin import parse_pin
from clusterctl.formats.site.yaml_problems import UNSHOWN

S = TypeVar("S")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def section(cls: type[S]) -> type[S]:
    """Make a class a section of a settings file: a frozen keyword-only dataclass that accepts no unknown field."""
    cls.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


def shaped(pattern: str, words: str) -> Callable[[str], str]:
    """Return a validator that requires the pattern and names the required form of the text."""
    shape = re.compile(pattern)

    def check(value: str) -> str:
        if not shape.fullmatch(value):
            raise ValueError(f"must be {words}")
        return value

    return check


def unique(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names; raise ValueError where one stands twice."""
    twice = first_duplicate(names)
    if twice is not None:
        raise ValueError(f"names {twice} twice: keep one")
    return names


def first_duplicate(names: Sequence[str]) -> str | None:
    """Return the first name that stands more than once, or None."""
    return next((name for name in names if names.count(name) > 1), None)


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
CODE_NAMES = {"22.04": "jammy", "24.04": "noble", "12": "bookworm"}
"""Version of a release that the roles support → its code name. YAML reads the version as a number."""


def code_name(value: object) -> object:
    """Return the code name of a release that is given by its version, a number as text, anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return value
    text = f"{value:.2f}" if isinstance(value, float) else str(value)
    return CODE_NAMES.get(text, text)


RELEASE = f"a release by its code name, such as jammy or noble, or by its version ({', '.join(CODE_NAMES)})"


Series = Annotated[
    str,
    BeforeValidator(code_name),
    AfterValidator(shaped(r"[a-z][a-z0-9_/-]{2,59}", RELEASE)),
]
Count = Annotated[int, Field(ge=0, le=100_000, strict=True)]
Positive = Annotated[int, Field(ge=1, le=100_000, strict=True)]
TcpPort = Annotated[int, Field(ge=1, le=65535, strict=True)]
Flag = Annotated[bool, Field(strict=True)]


KvPath = Annotated[
    str,
    AfterValidator(
        shaped(r"(?!.*\.\.)[A-Za-z0-9_][\w.+/-]{0,199}", "the path of an entry in Vault, like secret/cluster/bmc")
    ),
]
PassEntry = Annotated[
    str,
    AfterValidator(
        shaped(r"(?!.*\.\.)[A-Za-z0-9_@][\w@. +/-]{0,199}", "the name of an entry in pass, like cluster/bmc")
    ),
]


@section
class SecretRef:
    """Where a secret is kept; never the secret itself. Exactly one of the places is given.

    `sops_key` is the place of the secret in the file, `bmc.password`; empty where the whole file is the secret.
    `kv_field` is the field of an entry of HashiCorp Vault.
    """

    env: str | None = None
    file: str | None = None
    vault: Annotated[str | None, Field(description="an ansible-vault encrypted file")] = None
    vault_password_file: str | None = None
    credential: Annotated[FileName | None, Field(description="a credential that systemd passes to the service")] = None

    sops: Annotated[str | None, Field(description="a file that sops encrypted")] = None
    sops_key: Annotated[str, AfterValidator(shaped(r"([\w-]+(\.[\w-]+)*)?", "names with dots, like bmc.password"))] = ""
    pass_entry: Annotated[PassEntry | None, Field(alias="pass", description="an entry of the password store pass")] = (
        None
    )

    kv: Annotated[KvPath | None, Field(description="an entry of HashiCorp Vault's key/value store")] = None
    kv_field: Annotated[str, AfterValidator(shaped(r"[\w.-]{1,200}", "the name of a field, like password"))] = (
        "password"
    )

    def __post_init__(self) -> None:
        places = (self.env, self.file, self.vault, self.credential, self.sops, self.pass_entry, self.kv)
        if sum(ref is not None for ref in places) != 1:
            raise ValueError("give exactly one of env, file, vault, credential, sops, pass, kv")
        if self.sops_key and self.sops is None:
            raise ValueError("sops_key needs sops")
        if self.vault is not None and self.vault_password_file is None:
            raise ValueError("vault needs vault_password_file")


def _no_plain_text(value: Any) -> Any:
    """Refuse a secret that is written in the file itself. The error never repeats it."""
    if isinstance(value, dict | SecretRef):
        return value
    raise PydanticCustomError(
        UNSHOWN, "a secret never stands in this file: write {{env: NAME}}, {{file: PATH}} or {{vault: PATH}}"
    )


Secret = Annotated[SecretRef, BeforeValidator(_no_plain_text)]


def _fingerprint_or_empty(value: str) -> str:
    return parse_pin(value) if value else ""


Fingerprint = Annotated[
    str,
    AfterValidator(_fingerprint_or_empty),
    Field(description="SHA-256 of a certificate, with or without colons"),
]
