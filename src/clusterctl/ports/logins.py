"""Which credentials are shown to which BMC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from clusterctl.fleet.bmc.observation import Greeting
from clusterctl.fleet.secret import NeverPickled


@dataclass(frozen=True, slots=True)
class Login(NeverPickled):
    """`name` names these credentials, for operators and the sheet. `password` is a secret.

    `former`: what is tried where these are rejected, as `BmcAddress` has it.
    """

    name: str
    user: str
    password: str = field(repr=False)
    former: Login | None = field(default=None, repr=False)


class Logins(Protocol):
    """The site's word on credentials."""

    def login(self, host: str, greeting: Greeting) -> Login | None:
        """Return the one login to try at this address, by its answers; None where none applies.

        Thread-safe. Raise `UsageError` for a secret that cannot be read.
        """
        ...
