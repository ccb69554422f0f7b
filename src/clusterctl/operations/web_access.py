"""Users and API tokens of the web page, and what the page needs to sign users in and to serve over TLS."""

from __future__ import annotations

import enum
import ssl
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site import Site
from clusterctl.edges.site.secrets import private_text, resolve
from clusterctl.fleet.access import ApiToken, UserRole, new_password, user_name
from clusterctl.fleet.durations import parse_until, utc_text
from clusterctl.fleet.errors import UsageError
from clusterctl.operations.context import SiteContext, current_user
from clusterctl.operations.operation import Control, Effect, Outcome, Preview, Result
from clusterctl.ports.sign_in import IdentityProvider, WebAccounts

if TYPE_CHECKING:
    from clusterctl.edges.web.accounts import AccountFile

LONGEST_TOKEN = timedelta(days=366)


class AccessChange(enum.Enum):
    """What is changed."""

    ADD_USER = "web user add"
    REMOVE_USER = "web user remove"
    SET_PASSWORD = "web user passwd"  # noqa: S105 — the name of a command
    ADD_TOKEN = "web token add"  # noqa: S105 — likewise
    REMOVE_TOKEN = "web token remove"  # noqa: S105 — likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequest:
    """`role`, `until`: of what is added; `until` is the end of a token: `2026-12-01`, `30d`.

    `jobs_of`: the user of the scheduler whose jobs a token sees whole; empty for none.
    """

    change: AccessChange
    name: str
    role: UserRole = UserRole.VIEWER
    until: str = "90d"
    password: str = field(default="", repr=False)
    jobs_of: str = ""


def web_accounts(site: Site) -> WebAccounts:
    """Return the users and tokens of a site."""
    return _file(site)


def _file(site: Site) -> AccountFile:
    from clusterctl.edges.web.accounts import AccountFile

    return AccountFile(site.folder / "state" / "web")


def identity_provider(site: Site) -> IdentityProvider | None:
    """Return the provider that the site names; None where it names none. Reads its secret."""
    settings = site.settings.web.oidc
    if settings is None:
        return None
    from clusterctl.edges.web.oidc import OidcProvider

    reference = settings.client_secret
    secret = resolve(reference, site.folder, site.where("web", "oidc", "client_secret")) if reference else ""
    return OidcProvider(settings, secret, site.path(settings.ca_file))


def tls_context(site: Site) -> tuple[ssl.SSLContext, tuple[str, ...]]:
    """Return the context of the page's certificate, and the names that it is for. Raises `UsageError`."""
    from clusterctl.edges.web.certificate import certified_names, server_context

    settings = site.settings.web
    certificate = Path(site.path(settings.certificate))
    return server_context(certificate, Path(site.path(settings.private_key))), certified_names(certificate)


def read_password(file: Path) -> str:
    """Return the password in a file that only its owner may read."""
    return private_text(file, "--password-file")


def preview(context: SiteContext, request: AccessRequest) -> Preview:
    """Return what is changed. Raises `UsageError` for a name or password that cannot be."""
    user_name(request.name)
    if request.change in (AccessChange.ADD_USER, AccessChange.SET_PASSWORD) and request.password:
        new_password(request.password)
    if request.jobs_of:
        user_name(request.jobs_of)
    _require_name(context, request)
    return Preview(operation=request.change.value, question="Go on?", effects=(Effect(node="", text=_effect(request)),))


def _require_name(context: SiteContext, request: AccessRequest) -> None:
    accounts = web_accounts(context.site)
    of_tokens = request.change in (AccessChange.ADD_TOKEN, AccessChange.REMOVE_TOKEN)
    known = {one.name for one in (accounts.tokens() if of_tokens else accounts.users())}
    what = "token" if of_tokens else "user"
    adds = request.change in (AccessChange.ADD_USER, AccessChange.ADD_TOKEN)
    if adds and request.name in known:
        remedy = f"choose another name, or remove it first: clusterctl web {what} remove {request.name}"
        raise UsageError(f"there is such a {what} already", where=request.name, remedy=remedy)
    if not adds and request.name not in known:
        remedy = f"clusterctl web {what} list prints the names"
        raise UsageError(f"there is no such {what}", where=request.name, remedy=remedy)


def _effect(request: AccessRequest) -> str:
    match request.change:
        case AccessChange.ADD_USER:
            return f"add the user {request.name} with the role {request.role.value}"
        case AccessChange.REMOVE_USER:
            return f"remove the user {request.name}; the user's sessions end"
        case AccessChange.SET_PASSWORD:
            return f"set a new password for {request.name}; the user's sessions end"
        case AccessChange.ADD_TOKEN:
            until = parse_until(request.until, CLOCK.now(), longest=LONGEST_TOKEN)
            jobs = f", for the jobs of {request.jobs_of}" if request.jobs_of else ""
            text = f"make the token {request.name} with the role {request.role.value}{jobs}"
            return f"{text}, valid until {utc_text(until)}"
        case AccessChange.REMOVE_TOKEN:
            return f"remove the token {request.name}: it stops working"


def run(context: SiteContext, request: AccessRequest, control: Control) -> Result:
    """Change it. The result of `ADD_TOKEN` has the token as the value `token`, this once."""
    control.require(preview(context, request))
    text = _effect(request)
    values = _change(context, request)
    return Result(operation=request.change.value, outcomes=(Outcome(node=request.name, text=text, values=values),))


def _change(context: SiteContext, request: AccessRequest) -> dict[str, str]:
    accounts, now = _file(context.site), CLOCK.now()
    match request.change:
        case AccessChange.ADD_USER:
            accounts.add_user(request.name, request.role, request.password, now)
        case AccessChange.REMOVE_USER:
            accounts.remove_user(request.name)
        case AccessChange.SET_PASSWORD:
            accounts.set_password(request.name, request.password, now)
        case AccessChange.ADD_TOKEN:
            until = parse_until(request.until, now, longest=LONGEST_TOKEN)
            token = ApiToken(
                name=request.name,
                role=request.role,
                digest="",
                made_at=now,
                made_by=current_user(),
                expires_at=until,
                jobs_of=request.jobs_of,
            )
            return {"token": accounts.add(token)}
        case AccessChange.REMOVE_TOKEN:
            accounts.remove_token(request.name)
    return {}
