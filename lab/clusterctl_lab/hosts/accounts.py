"""User accounts as lines of passwd, shadow and group: pure text, because nothing of the host runs at install time."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from clusterctl.fleet.errors import UsageError

FIRST_UID = 1000
_ALLOWED = re.compile(r"[a-z_][a-z0-9_-]{0,31}")


@dataclass(frozen=True, slots=True)
class Account:
    """A line of /etc/passwd, as far as it matters here."""

    name: str
    uid: int
    gid: int
    home: str


@dataclass(frozen=True, slots=True)
class AccountFiles:
    """Contents of /etc/passwd, /etc/shadow and /etc/group."""

    passwd: str
    shadow: str
    group: str

    def find(self, name: str) -> Account | None:
        for line in self.passwd.splitlines():
            fields = line.split(":")
            if fields[0] == name:
                return Account(name, int(fields[2]), int(fields[3]), fields[5])
        return None

    def group_id(self, name: str) -> int | None:
        for line in self.group.splitlines():
            fields = line.split(":")
            if fields[0] == name:
                return int(fields[2])
        return None

    def with_account(self, name: str, shell: str) -> tuple[AccountFiles, Account]:
        """The files with `name` in them, and its account; the same files where it is there already.

        The new account has no password that anyone could type (`*`), its own group, and a home in /home.
        """
        known = self.find(name)
        if known is not None:
            return self, known
        if not _ALLOWED.fullmatch(name) or set(shell) & set(":\n"):
            raise UsageError(f"`{name}` cannot be a user", where="user-data users", remedy="Use a-z, 0-9, _ and -.")
        taken = {int(line.split(":")[2]) for line in self.passwd.splitlines() + self.group.splitlines() if line}
        uid = next(uid for uid in range(FIRST_UID, 60000) if uid not in taken)
        account = Account(name, uid, uid, f"/home/{name}")
        files = replace(
            self,
            passwd=f"{self.passwd}{name}:x:{uid}:{uid}::{account.home}:{shell}\n",
            shadow=f"{self.shadow}{name}:*:19000:0:99999:7:::\n",
            group=f"{self.group}{name}:x:{uid}:\n",
        )
        return files, account
