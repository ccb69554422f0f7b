"""`--server URL`: a command on jobs that asks the web service, with its user's token, instead of the journal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clusterctl.fleet.errors import UsageError

if TYPE_CHECKING:
    from clusterctl.operations.job_client import JobClient

F = TypeVar("F", bound=Callable[..., Any])
TOKEN_FILE = ".config/clusterctl/token"  # noqa: S105 — a path
_META = "clusterctl.remote."


def server_option(function: F) -> F:
    """Add `--server`, `--token-file` and `--ca-file`: `remote` reads them."""
    kept: dict[str, Any] = {"expose_value": False, "callback": _keep}
    for option in (
        click.option(
            "--ca-file",
            envvar="CLUSTERCTL_CA_FILE",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="With --server: certificates that its own is checked with (or CLUSTERCTL_CA_FILE).",
            **kept,
        ),
        click.option(
            "--token-file",
            envvar="CLUSTERCTL_TOKEN_FILE",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help=f"With --server: the token, in a file of mode 0600.  [default: ~/{TOKEN_FILE}]",
            **kept,
        ),
        click.option(
            "--server",
            envvar="CLUSTERCTL_SERVER",
            metavar="URL",
            help="Ask this web service, as a user without rights on the controller (or CLUSTERCTL_SERVER).",
            **kept,
        ),
    ):
        function = option(function)
    return function


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    ctx.meta[f"{_META}{param.name}"] = value


def remote() -> JobClient | None:
    """Return the client of the service that the command names; None where it names none.

    Raises `UsageError` for a wrong address, and for a token file that is missing or that others may read.
    """
    meta = click.get_current_context().meta
    url = meta.get(f"{_META}server")
    if not url:
        return None
    from clusterctl.operations.job_client import client

    ca_file = meta.get(f"{_META}ca_file")
    return client(url, meta.get(f"{_META}token_file") or Path.home() / TOKEN_FILE, str(ca_file or ""))


def refuse_with_server(*given: tuple[str, object]) -> None:
    """Raise `UsageError` for the first option that is given: what it names is on the controller."""
    for name, value in given:
        if value:
            raise UsageError(f"{name} and --server exclude each other", where=name, remedy="leave out one of them")
