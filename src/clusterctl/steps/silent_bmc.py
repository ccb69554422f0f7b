"""What is found where a BMC does not let itself be read, whichever step asked."""

from __future__ import annotations

from clusterctl.fleet.errors import (
    AuthenticationError,
    ClusterctlError,
    ParseError,
    PasswordChangeError,
    UnreachableError,
    UntrustedError,
    UsageError,
)
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.state import NodeState


def unreadable(node: NodeState, error: ClusterctlError) -> Finding:
    """A BMC that cannot be read: rejected credentials stand firm, silence may pass, nonsense is unmeasured."""
    where = f"{node.bmc} ({node.location})"
    match error:
        case PasswordChangeError():
            code, verdict, firm = Code.BMC_PASSWORD_EXPIRED, Verdict.FAIL, True
            remedy = f"give the BMC at {where} a password of the site's: clusterctl accounts rotate {node.name}"
        case UsageError():
            code, verdict, firm = Code.BMC_MISCONFIGURED, Verdict.FAIL, True
            remedy = f"BMC at {where}: {error.remedy}"
        case AuthenticationError():
            code, verdict, firm = Code.BMC_LOGIN_REFUSED, Verdict.FAIL, True
            remedy = f"set the BMC's password at {where} to the site's, or give its factory password in the sheet"
        case UntrustedError():
            code, verdict, firm = Code.BMC_UNTRUSTED, Verdict.FAIL, True
            remedy = f"BMC at {where}: {error.remedy}"
        case UnreachableError():
            code, verdict, firm = Code.BMC_UNREACHABLE, Verdict.FAIL, False
            remedy = f"BMC at {where}: {error.remedy or 'check its power, its cable and its address'}"
        case ParseError():
            code, verdict, firm = Code.OUTPUT_UNREADABLE, Verdict.INCONCLUSIVE, False
            remedy = f"update the firmware of the BMC at {where}, or report what it answered"
        case _:
            code, verdict, firm = Code.BMC_BROKEN, Verdict.FAIL, False
            remedy = f"reset the BMC at {where}; if that does not help, update its firmware"
    return Finding(
        check="bmc", verdict=verdict, code=code, subject="bmc", cause=error.message, remedy=remedy, deterministic=firm
    )
