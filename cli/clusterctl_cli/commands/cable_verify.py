"""`clusterctl cable verify`: a wiring plan, or the rule that most cables follow, against a recorded fabric, offline.

With --ethernet or --live, network cables against LLDP neighbours.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl.operations.judging import collector_paused
from clusterctl_cli.cabling_options import guids_option, host_gbps_option
from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import FILE, site_option, verbose_option

if TYPE_CHECKING:
    from clusterctl.cabling.explain.verify import Verification


@click.command("verify", short_help="Compare a fabric with its plan: which cables to move.")
@click.option("--plan", type=FILE, help="wiring.csv, ibtopodiff .topo or UFM .ndt, gzipped or not")
@click.option("--fabric", type=FILE, help="ibnetdiscover, iblinkinfo or ibdiagnet's db_csv, gzipped or not")
@click.option("--ethernet", type=FILE, help="instead of both: an Ethernet plan, against what --lldp has recorded")
@click.option(
    "--lldp",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="DEVICE.json that `lldpctl -f json0` printed there, or a folder of them; repeatable",
)
@click.option("--live", is_flag=True, help="instead of recorded files: ask the site's hosts over SSH whom they hear")
@click.option(
    "--deadline", type=click.FloatRange(min=1), default=300.0, show_default=True, help="with --live: seconds to wait"
)
@site_option
@guids_option
@host_gbps_option
@format_option(*DOCUMENTS)
@verbose_option
@click.pass_context
def verify(
    ctx: click.Context,
    /,
    *,
    plan: Path | None,
    fabric: Path | None,
    ethernet: Path | None,
    lldp: tuple[Path, ...],
    live: bool,
    deadline: float,
    folder: Path,
    guids: Path | None,
    host_gbps: float | None,
    as_json: bool,
) -> None:
    """Compare a wiring plan with a recorded fabric and say which cables to move.

    Without --plan, the wiring rule is inferred from the fabric, and the cables that break it are named.

    With --live, the network cables of the site's installed hosts are compared with the Ethernet plan: --ethernet, or
    the one that the site names. --lldp may add what switches have recorded.

    Exit code 0: everything is as planned; 1: something is not; 2: a file could not be read or understood.
    """
    if ethernet is not None or lldp or live:
        from clusterctl.operations.network_cables import NetworkCablesRequest
        from clusterctl_cli.commands.cable_ethernet import verify_network_cables

        request = NetworkCablesRequest(plan=ethernet, recorded=lldp, deadline_s=deadline)
        ctx.exit(verify_network_cables(request, folder if live else None, as_json=as_json))
    if fabric is None:
        from clusterctl.fleet.errors import UsageError

        raise UsageError(
            "it is required", where="--fabric", remedy="clusterctl cable verify --help shows what it takes"
        )
    with collector_paused():
        if plan is not None:
            ctx.exit(_planned(plan, fabric, guids, host_gbps, as_json))
        ctx.exit(_unplanned(fabric, guids, host_gbps, as_json))


def _planned(plan: Path, fabric: Path, guids: Path | None, host_gbps: float | None, as_json: bool) -> int:
    from clusterctl.cabling.explain.verify import verify as compare  # here, not above: keeps --help fast
    from clusterctl.operations.fabric_files import fabric_in, guids_in, plan_in

    verification = compare(plan_in(plan), fabric_in(fabric), guids_in(guids), host_gbps=host_gbps)
    if as_json:
        _print_document(verification)
    else:
        from clusterctl_cli.cabling_face import print_verification

        print_verification(verification)
    return 1 if verification.explanations else 0


def _unplanned(fabric: Path, guids: Path | None, host_gbps: float | None, as_json: bool) -> int:
    """What was inferred is said first: it decides what is called wrong."""
    from clusterctl.cabling.infer.plan import verify_unplanned
    from clusterctl.operations.fabric_files import fabric_in, guids_in

    found = verify_unplanned(fabric_in(fabric), guids_in(guids), host_gbps=host_gbps)
    inference = found.inference
    if as_json:
        inferred = {"rules": list(inference.rules), "judged": inference.judged, "not_judged": inference.unjudged}
        _print_document(found.verification, inferred=inferred)
    else:
        from clusterctl_cli.cabling_face import print_verification

        click.echo("no --plan: held against the rules that most cables follow")
        for rule in inference.rules:
            click.echo(f"  {rule}")
        print_verification(found.verification)
    return 1 if found.verification.explanations else 0


def _print_document(verification: Verification, **more: object) -> None:
    from clusterctl_cli.cabling_json import verification_json
    from clusterctl_cli.formats import print_document

    print_document({**verification_json(verification), **more})
