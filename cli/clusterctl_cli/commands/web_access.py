"""`clusterctl web user add|list|remove|passwd` and `clusterctl web token add|list|remove`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clusterctl_cli.formats import format_option, print_document
from clusterctl_cli.options import decision_options, site_option
from clusterctl_cli.text import columns, echo, terminal_width

ROLES = ["viewer", "operator", "admin"]
role_option = click.option(
    "--role",
    type=click.Choice(ROLES),
    default="viewer",
    show_default=True,
    help="viewer reads; operator acts on nodes.",
)
password_option = click.option(
    "--password-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file of mode 0600 with the password; else it is asked for.",
)


@click.command()
@click.argument("name")
@role_option
@password_option
@decision_options
def user_add(*, name: str, role: str, password_file: Path | None, **options: Any) -> int:
    """Add a user of the web page. The password is asked for, and kept as an argon2id digest."""
    return _change("ADD_USER", options, name=name, role=role, password=password_file)


@click.command()
@click.argument("name")
@password_option
@decision_options
def user_passwd(*, name: str, password_file: Path | None, **options: Any) -> int:
    """Set a user's password; the user's sessions end."""
    return _change("SET_PASSWORD", options, name=name, password=password_file)


@click.command()
@click.argument("name")
@decision_options
def user_remove(*, name: str, **options: Any) -> int:
    """Remove a user; the user's sessions end."""
    return _change("REMOVE_USER", options, name=name)


@click.command()
@click.argument("name")
@role_option
@click.option("--until", default="90d", show_default=True, metavar="WHEN", help="2027-01-01, 30d; at most 366 days.")
@click.option("--jobs-of", default="", metavar="USER", help="A user of Slurm: sees the log texts of that user's jobs.")
@decision_options
def token_add(*, name: str, role: str, until: str, jobs_of: str, **options: Any) -> int:
    """Make a token of the API and print it, this once: only its digest is kept."""
    return _change("ADD_TOKEN", options, name=name, role=role, until=until, jobs_of=jobs_of)


@click.command()
@click.argument("name")
@decision_options
def token_remove(*, name: str, **options: Any) -> int:
    """Remove a token: it stops working at once."""
    return _change("REMOVE_TOKEN", options, name=name)


@click.command()
@site_option
@format_option()
def user_list(*, folder: Path, as_json: bool) -> int:
    """List the users of the web page with their roles."""
    accounts = _accounts(folder)
    if as_json:
        rows = [
            {"name": one.name, "role": one.role.value, "changed_at": one.changed_at.isoformat()}
            for one in accounts.users()
        ]
        print_document({"users": rows})
        return 0
    table = [(one.name, one.role.value, f"{one.changed_at:%Y-%m-%d %H:%M}") for one in accounts.users()]
    echo(columns(("USER", "ROLE", "PASSWORD SET (UTC)"), table, width=terminal_width()) if table else "no users")
    return 0


@click.command()
@site_option
@format_option()
def token_list(*, folder: Path, as_json: bool) -> int:
    """List the tokens of the API with their roles and ends; never the tokens themselves."""
    from clusterctl.operations.operation import current_time

    accounts, now = _accounts(folder), current_time()
    if as_json:
        rows = [
            {
                "name": one.name,
                "role": one.role.value,
                "made_at": one.made_at.isoformat(),
                "made_by": one.made_by,
                "expires_at": one.expires_at.isoformat(),
                "expired": one.expired(now),
                "jobs_of": one.jobs_of,
            }
            for one in accounts.tokens()
        ]
        print_document({"tokens": rows})
        return 0
    table = [
        (one.name, one.role.value, one.made_by, f"{one.expires_at:%Y-%m-%d %H:%M}" + " expired" * one.expired(now))
        for one in accounts.tokens()
    ]
    echo(columns(("TOKEN", "ROLE", "MADE BY", "UNTIL (UTC)"), table, width=terminal_width()) if table else "no tokens")
    return 0


def _accounts(folder: Path) -> Any:
    from clusterctl.operations.web_access import web_accounts
    from clusterctl_cli.context import open_context

    return web_accounts(open_context(folder).site)


def _change(change: str, options: dict[str, Any], *, password: Path | None = None, **fields: Any) -> int:
    from dataclasses import replace

    from clusterctl.fleet.access import UserRole
    from clusterctl.operations import web_access
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import Flags, approve, fix_moments, print_event
    from clusterctl_cli.context import open_context
    from clusterctl_cli.output import print_result

    flags = Flags.taken(options)
    context = open_context(options["folder"])
    if "role" in fields:
        fields["role"] = UserRole(fields["role"])
    fix_moments(fields)
    request = web_access.AccessRequest(change=web_access.AccessChange[change], **fields)
    preview = web_access.preview(context, request)
    if not approve(preview, flags):
        return 0
    if request.change in (web_access.AccessChange.ADD_USER, web_access.AccessChange.SET_PASSWORD):
        request = replace(request, password=web_access.read_password(password) if password else _asked())
    result = web_access.run(context, request, Control(preview.digest, print_event))
    print_result(result, as_json=flags.as_json)
    if not flags.as_json and "token" in result.outcomes[0].values:
        echo(f"\n{result.outcomes[0].values['token']}\n\nKeep it now: it is not shown again.")
    return result.exit_code


def _asked() -> str:
    from clusterctl_cli.approval import ask

    return ask("Password", option="--password-file", remedy="pass --password-file FILE", hidden=True)
