"""A site for the sweeps of the tests: BMCs on 127.x addresses, an authority that vouches for them, a plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner, Result

from clusterctl_cli.main import run as run_cli
from tests.edges.site.ready import write_ready_site
from tests.edges.sweep.kit import PASSWORD, Network


def write(folder: Path, net: Network, sheet: str | None, bmc: str = "") -> Path:
    """`sheet` is the text of bmcs.csv, None for no such file; `bmc` more lines of the section bmc."""
    site = write_ready_site(folder / "site")
    (site / "secrets" / "bmc-password").write_text(PASSWORD)
    (site / "bmc-ca.pem").write_text(Path(net.ca_file).read_text())
    file = site / "site.yml"
    head, section, rest = file.read_text().partition("bmc:\n")
    file.write_text(f"{head}{section}  port: {net.port}\n{bmc}{rest}")
    (site / "bmcs.csv").unlink()
    if sheet is not None:
        (site / "bmcs.csv").write_text(sheet)
    return site


def sweep(site: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Exit code and document of `discover --sweep 127.77.0.0/29 --json`, with more words."""
    result, code = invoke("discover", "--sweep", "127.77.0.0/29", "--site", str(site), "--json", *words)
    return code, json.loads(result.stdout)


def invoke(*words: str) -> tuple[Result, int]:
    """As the command's entry point runs it: what was printed, and the exit code."""
    codes: list[int] = []

    @click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
    def whole() -> None:
        codes.append(run_cli(words))

    result = CliRunner().invoke(whole, catch_exceptions=False)
    return result, codes[0]
