"""`clusterctl lab replay`: serve recorded BMCs."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path

import click

from clusterctl.fleet.errors import UsageError
from clusterctl_cli.options import gathered

_LISTEN_REMEDY = "write ADDRESS:PORT, like 127.0.0.1:443"
_RANGE_REMEDY = "write two numbers of seconds, like 0.05-0.3"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """The options of `replay`."""

    trees: tuple[Path, ...]
    listen: str
    user: str
    password_file: Path | None
    copies: int
    seed: int
    latency: str | None
    out: Path


@click.command()
@click.argument("trees", metavar="TREE...", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--listen",
    default="127.0.0.1:443",
    show_default=True,
    help="Address and port of the first BMC; the others follow on the next addresses. A site expects port 443.",
)
@click.option("--user", default="root", show_default=True, help="User name of the BMCs.")
@click.option(
    "--password-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Default: a random one.",
)
@click.option(
    "--copies",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Machines from each recording.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the copies' serials and addresses.")
@click.option("--latency", metavar="MIN-MAX", help="Seconds that each answer takes, like 0.05-0.3.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("replay"),
    show_default="./replay",
    help="A new folder for the certificate authority, the password and the list of BMCs; removed at the end.",
)
@gathered(ReplayOptions)
def replay(options: ReplayOptions) -> None:
    """Serve recorded BMCs. Each TREE is a recording of the DMTF's Redfish Mockup Creator.

    A TREE is a folder (an index.json for each resource) or an archive of it. Power, boot, sessions and clearing the
    event log work; everything else stays as recorded. With --copies each recording becomes several machines with
    serials, MAC addresses and GUIDs of their own. Runs until Ctrl-C.
    """
    import secrets  # here: it loads OpenSSL, which `clusterctl --help` does not need

    from clusterctl_lab.emulators.redfish.replay import ReplaySettings
    from clusterctl_lab.replay import ReplayOrder
    from clusterctl_lab.replay import replay as serve

    address, port = _place(options.listen)
    password = (
        options.password_file.read_text(encoding="utf-8").rstrip("\n")
        if options.password_file
        else secrets.token_urlsafe(15)
    )
    settings = ReplaySettings(
        address, port, options.user, password, _range(options.latency) if options.latency else None
    )
    serve(
        ReplayOrder(options.trees, options.out.resolve(), settings, options.copies, options.seed),
        lambda words: click.echo(words, err=True),
    )


def _place(text: str) -> tuple[IPv4Address, int]:
    address, _, port = text.rpartition(":")
    try:
        return IPv4Address(address), int(port)
    except (AddressValueError, ValueError):
        raise UsageError(f"{text!r} is no address and port", where="--listen", remedy=_LISTEN_REMEDY) from None


def _range(text: str) -> tuple[float, float]:
    low, _, high = text.partition("-")
    try:
        found = float(low), float(high or low)
    except ValueError:
        raise UsageError(f"{text!r} is no range", where="--latency", remedy=_RANGE_REMEDY) from None
    if not 0 <= found[0] <= found[1]:
        raise UsageError(f"{text!r} runs backwards", where="--latency", remedy=_RANGE_REMEDY)
    return found
