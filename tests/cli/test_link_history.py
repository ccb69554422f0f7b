"""`cable health --since`: links judged over the readings that the site's journal has, without a file."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Verdict
from clusterctl.operations.compose import StepFactory
from clusterctl.operations.context import open_site
from clusterctl.operations.fabric_files import limits_for
from clusterctl.operations.site_fabric import site_fabric
from clusterctl.ports import Deadline
from clusterctl.steps.cable.link_health import LinkCollector
from clusterctl_burnin.limits.fabric_reading import shipped_fabric_limits
from clusterctl_burnin.package_data import text_of
from tests.cabling.bench import plan
from tests.cli.nights import write
from tests.cli.site_of_three import run
from tests.steps.cable.test_link_health import Clock, FakeFabric, end_of


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write(tmp_path)


def read(site: Path, *errors: int) -> None:
    """Readings one hour apart, the last one now: so many symbol errors stand at one port."""
    journal = open_site(site).journal
    clock = Clock()
    fabric = FakeFabric(clock)
    collector = LinkCollector(journal, fabric, fabric, shipped_fabric_limits("ndr"), plan())
    for ago, count in zip(range(len(errors) - 1, -1, -1), errors, strict=True):
        clock.at = CLOCK.now() - timedelta(hours=ago)
        fabric.counts = {end_of(fabric, "node001"): {"SymbolErrorCounter": count}}
        collector.look(Deadline.after(60))
    journal.close()


def test_the_errors_of_hours_have_a_rate(site: Path) -> None:
    read(site, 5, 5, 305)
    result = run(site, "cable", "health", "--since", "1d", "--json")
    assert result.return_value == 1
    found = json.loads(result.stdout)
    assert (found["verdict"], found["bad"]) == ("fail", 1)
    assert found["seconds"] == pytest.approx(7200, abs=60)
    (counter,) = next(one for one in found["findings"] if one["kind"] == "bit_errors")["counters"]
    assert (counter["added"], counter["counter"]) == (300, "SymbolErrorCounter")
    assert counter["per_hour"] == pytest.approx(150, rel=0.01)


def own_limits(site: Path) -> None:
    """The shipped ones, but for a million times as many symbol errors."""
    text = text_of("limits/fabric/ndr.yml").replace("name: ndr", "name: mild").replace("1.0e-14", "1.0e-8")
    text = text.replace("1.0e-15", "1.0e-8")
    (site / "mild.yml").write_text(text)
    name_limits(site, "mild.yml")


def name_limits(site: Path, name: str) -> None:
    settings = (site / "site.yml").read_text()
    assert "\nfabric:\n" in settings
    (site / "site.yml").write_text(settings.replace("\nfabric:\n", f"\nfabric:\n  limits: {name}\n"))


def test_the_site_names_the_limits_of_its_links(site: Path) -> None:
    """A file relative to the site. The history, the page and the steps judge by it; an option goes before it."""
    read(site, 5, 5, 305)
    own_limits(site)
    found = json.loads(run(site, "cable", "health", "--since", "1d", "--json").stdout)
    assert (found["verdict"], found["limits"]["name"]) == ("pass", "mild")
    assert run(site, "cable", "health", "--since", "1d", "--limits", "ndr").return_value == 1
    context = open_site(site)
    shown = site_fabric(context)
    with closing(context.adapters()) as adapters:
        collector = StepFactory(context, adapters, threading.Event()).link_collector()
    context.journal.close()
    assert shown is not None
    assert shown.report.counters is not None
    assert shown.report.counters.health.verdict is Verdict.PASS
    assert collector.limits.name == "mild"


@pytest.mark.parametrize(("name", "message"), [("edr", "no fabric limits are called 'edr'"), ("edr.yml", "edr.yml")])
def test_limits_that_are_not_there_are_an_error_of_the_site_file(site: Path, name: str, message: str) -> None:
    name_limits(site, name)
    with pytest.raises(UsageError) as caught:
        limits_for(open_site(site).site)
    assert message in f"{caught.value.message} {caught.value.where}"
    assert "site" in caught.value.where


def test_the_report_has_the_last_judgement(site: Path) -> None:
    """With the time of it; a site whose links were never read has none, and claims nothing."""
    assert "## Links" not in run(site, "report").stdout
    assert json.loads(run(site, "report", "--json").stdout)["links"] is None
    read(site, 5, 5, 305)
    page = run(site, "report").stdout
    assert "## Links" in page
    assert "1 bad" in page
    assert "300 symbol errors" in page
    assert json.loads(run(site, "report", "--json").stdout)["links"]["verdict"] == "fail"


def test_quiet_hours_prove_all_links(site: Path) -> None:
    read(site, 5, 5)
    assert run(site, "cable", "health", "--since", "1d").return_value == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--since", "1d"), "fewer than two readings"),
        (("--since", "1d", "--before", __file__), "leave --before out"),
        ((), "give --before and --after, or --since"),
    ],
)
def test_what_cannot_be_judged_is_refused(site: Path, options: tuple[str, ...], message: str) -> None:
    read(site, 5)
    with pytest.raises(UsageError) as caught:
        run(site, "cable", "health", *options)
    assert message in f"{caught.value.message} {caught.value.remedy}"
