"""One tree of errors. Each names what is wrong, where, and what to do; its class decides the exit code."""

from __future__ import annotations

import enum


class ClusterctlError(Exception):
    """Base of everything we raise on purpose.

    `where` names the file, line and field (`site.yml:12 batch.install`), the node or the address;
    `remedy` is one sentence in the imperative. Neither ever holds a secret.
    """

    kind = "error"
    exit_code = 1

    def __init__(self, message: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        head = f"{self.where}: {self.message}" if self.where else self.message
        return f"{head} — {self.remedy}" if self.remedy else head


class UsageError(ClusterctlError):
    """The operator's input is wrong: site file, plan, flag, name. Exit code 2; nothing was changed."""

    kind = "usage"
    exit_code = 2


class NoBmcError(UsageError):
    """The site gives the node no BMC: whatever works through one is refused."""

    kind = "no_bmc"


def no_bmc(name: str) -> NoBmcError:
    """Return the error on a node without a BMC."""
    return NoBmcError(
        "the site gives it no BMC, and this works through the BMC",
        where=name,
        remedy="leave the node out, or write its BMC's address into the sheet (column bmc_address)",
    )


class EnvironmentBrokenError(ClusterctlError):
    """The controller lacks something: a tool, a database, a network. Exit code 3."""

    kind = "environment"
    exit_code = 3


class JournalUnavailableError(EnvironmentBrokenError):
    """The journal takes nothing now: its server is away, its disk is full, or others write for too long."""


class ParseError(ClusterctlError):
    """Foreign text was not understood: never healthy, always INCONCLUSIVE or a refusal."""

    kind = "parse"


class EdgeError(ClusterctlError):
    """An outside thing (BMC, MAAS, host, fabric) refused, failed or answered nonsense."""

    kind = "edge"


class NoFabricPortError(EdgeError):
    """The machine that runs the fabric's tools has no InfiniBand port that they can open. No node is to blame, and
    every command that reads the fabric fails until it is repaired: exit code 3.
    """

    kind = "no_fabric_port"
    exit_code = 3


class RootDiskUnclearError(EdgeError):
    """The SKU's rule does not name exactly one drive of those that the machine sees: an operator has to decide."""

    kind = "root_disk_unclear"


class UnreachableError(EdgeError):
    """No answer within the deadline, or no route."""

    kind = "unreachable"


class SshFailure(enum.Enum):
    """Why a host gave no SSH session.

    REFUSED      the host is up, and no server listens
    NO_ANSWER    no reply at all
    NO_GREETING  the kernel takes the connection, and the server answers nothing in time: the host hangs
    BROKEN       the connection was lost
    UNKNOWN      anything else
    """

    REFUSED = "refused"
    NO_ANSWER = "no answer"
    NO_GREETING = "no greeting"
    BROKEN = "broken"
    UNKNOWN = "unknown"


class NoSshError(UnreachableError):
    """A host gave no SSH session; `failure` is the kind of it."""

    def __init__(self, message: str, failure: SshFailure, *, where: str = "", remedy: str = "") -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.failure = failure


class InstallerUnavailableError(UnreachableError):
    """The installer's own service does not run or cannot be reached: wait for it. No machine is to blame."""

    kind = "installer_unavailable"


class InstallerBusyError(EdgeError):
    """The installer cannot do it now and has not done it: ask again later. No machine is to blame."""

    kind = "installer_busy"


class AuthenticationError(EdgeError):
    """The outside thing answered and rejected our credentials: never retried (lock-out)."""

    kind = "authentication"


class PrivilegeError(EdgeError):
    """The account is right and lacks a privilege: another login would not help, an operator has to grant it."""

    kind = "privilege"


class BusyError(EdgeError):
    """The outside thing answers that it is busy (HTTP 503), as long as it was waited for."""

    kind = "busy"


class PasswordChangeError(AuthenticationError):
    """A BMC took our credentials and does nothing before its password is changed. `account`: the one to change, where
    the BMC names it.
    """

    kind = "password_change"

    def __init__(self, message: str, *, where: str = "", remedy: str = "", account: str = "") -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.account = account


class UntrustedError(EdgeError):
    """The peer could not prove its identity (TLS certificate, SSH host key): no secret was sent."""

    kind = "untrusted"


class OutcomeUnknownError(EdgeError):
    """The request may or may not have taken effect: look at the world before doing anything else."""

    kind = "outcome_unknown"


class ClaimLostError(ClusterctlError):
    """Another run holds the node now: stop acting on it."""

    kind = "claim_lost"


class ConflictError(ClusterctlError):
    """Another process wrote the same thing a moment before: nothing of ours was written; read again."""

    kind = "conflict"


class CancelledError(ClusterctlError):
    """The run was asked to stop."""

    kind = "cancelled"
    exit_code = 130
