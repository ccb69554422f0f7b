"""Which credentials are shown to which BMC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from clusterctl.fleet.bmc.observation import Greeting
from clusterctl.fleet.secret import NeverPickled


@dataclass(frozen=True, slots=True)
class Login(NeverPickled):
    """`name` says whose credentials these are, for people and the sheet. `password` is a secret.

    `former`: what is tried where these are rejected, as `BmcAddress` has it.
    """

    name: str
    user: str
    password: str = field(repr=False)
    former: Login | None = field(default=None, repr=False)


class Logins(Protocol):
    """The site's word on credentials."""

    def login(self, host: str, greeting: Greeting) -> Login | None:
        """The one login that is tried at this address, for what answers there; None where none applies.

        Thread-safe. Raises `UsageError` for a secret that cannot be read.
        """
        ...
