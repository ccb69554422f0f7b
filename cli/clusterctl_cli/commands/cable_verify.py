"""`clusterctl cable verify`: a wiring plan, or the rule that most cables follow, against a recorded fabric, offline.

With --ethernet or --live, network cables against LLDP neighbours.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import click

from clusterctl_cli.cabling_options import guids_option, host_gbps_option, plan_option, sheet_option
from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import FILE, gathered, site_option
from clusterctl_cli.text import echo


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """The options of `verify`."""

    plan: tuple[Path, ...]
    sheet: str
    fabric: Path | None
    ethernet: Path | None
    lldp: tuple[Path, ...]
    live: bool
    deadline: float
    folder: Path
    guids: Path | None
    host_gbps: float | None
    as_json: bool


@click.command("verify")
@plan_option
@sheet_option
@click.option("--fabric", type=FILE, help="ibnetdiscover, iblinkinfo or ibdiagnet's db_csv, gzipped or not")
@click.option("--ethernet", type=FILE, help="instead of both: an Ethernet plan, against what --lldp has recorded")
@click.option(
    "--lldp",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="DEVICE.json that `lldpctl -f json0` printed there, or a folder of them; repeatable",
)
@click.option("--live", is_flag=True, help="instead of recorded files: read the LLDP neighbours of the site's hosts")
@click.option(
    "--deadline", type=click.FloatRange(min=1), default=300.0, show_default=True, help="with --live: seconds to wait"
)
@site_option
@guids_option
@host_gbps_option
@format_option(*DOCUMENTS)
@click.pass_context
@gathered(VerifyOptions)
def verify(ctx: click.Context, options: VerifyOptions) -> None:
    """Compare a wiring plan with a recorded fabric and name the cables to move.

    Without --plan, the wiring rule is inferred from the fabric, and the cables that break it are named.

    With --live, the network cables of the site's installed hosts are compared with the Ethernet plan: --ethernet, or
    the one that the site names. --lldp may add what switches have recorded.

    Exit code 0: everything is as planned; 1: something is not; 2: a file could not be read or understood.
    """
    if options.ethernet is not None or options.lldp or options.live:
        from clusterctl.operations.network_cables import NetworkCablesRequest
        from clusterctl_cli.commands.cable_ethernet import verify_network_cables

        request = NetworkCablesRequest(plan=options.ethernet, recorded=options.lldp, deadline_s=options.deadline)
        ctx.exit(verify_network_cables(request, options.folder if options.live else None, as_json=options.as_json))
    from clusterctl.operations import cabling
    from clusterctl.operations.fabric_files import PlanFiles
    from clusterctl_cli.cabling_json import verification_json
    from clusterctl_cli.formats import print_document

    result = cabling.run_verify(
        cabling.VerifyRequest(
            fabric=options.fabric,
            plan=PlanFiles(options.plan, options.sheet),
            guids=options.guids,
            host_gbps=options.host_gbps,
        )
    )
    if options.as_json:
        inferred = {} if result.inferred is None else {"inferred": asdict(result.inferred)}
        print_document(verification_json(result) | inferred)
    else:
        from clusterctl_cli.cabling_face import print_verification

        if result.inferred is not None:  # printed first: the rules decide what is called wrong
            echo("no --plan: compared with the rules that most cables follow")
            for rule in result.inferred.rules:
                echo(f"  {rule}")
        print_verification(result)
    ctx.exit(result.exit_code)
