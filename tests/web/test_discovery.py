"""Prometheus itself asks the page which nodes there are: one appears with its install, and goes when it is retired."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import UserRole
from clusterctl.fleet.event import Kind
from clusterctl.operations.context import SiteContext, open_site
from lab.tests.lab_kit import eventually
from tests.cli.site_of_three import write
from tests.edges.ansible.role_cases import CASES
from tests.events import new_event
from tests.ports import reserve_port
from tests.web.browser import MADE, QUICK, Browser, access
from tests.web.served import page

WAIT_S = 240.0
HOST = "127.0.0.1"


def configuration(folder: Path, address: str, token: str) -> Path:
    """Return the role's configuration, which a test of the roles holds against its template, for this page."""
    document = yaml.safe_load((CASES / "prometheus/discovery/golden/prometheus.yml.j2").read_text())
    document["rule_files"], document["alerting"] = [], {}
    document["global"] |= {"scrape_interval": "1h", "evaluation_interval": "1h"}
    jobs = [job for job in document["scrape_configs"] if "http_sd_configs" in job]
    (folder / "token").write_text(token)
    for job in jobs:
        (asked,) = job["http_sd_configs"]
        assert asked["url"] == "https://controller.example.net:8443/api/v1/scrape-targets"
        asked |= {"url": f"{address}/api/v1/scrape-targets", "refresh_interval": "1s"}
        asked["authorization"]["credentials_file"] = str(folder / "token")
        del asked["tls_config"]
    (own,) = [job for job in document["scrape_configs"] if job["job_name"] == "clusterctl"]
    assert own["static_configs"] == [{"targets": ["controller.example.net:8443"]}]
    assert own.pop("scheme") == "https"
    own |= {"static_configs": [{"targets": [address.removeprefix("http://")]}], "scrape_interval": "1s"}
    own["authorization"]["credentials_file"] = str(folder / "token")
    del own["tls_config"]
    document["scrape_configs"] = [*jobs, own]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(document))
    return folder / "prometheus.yml"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[SiteContext]:
    """n1 has a system; its exporters are on a loopback address, where nothing is asked within the test."""
    opened = open_site(write(tmp_path))
    opened.journal.append([new_event("node", "id-n1", Kind.NODE_ADDRESSED, {"address": HOST})])
    yield opened
    opened.journal.close()


@pytest.fixture
def prometheus(site: SiteContext, tmp_path: Path) -> Iterator[str]:
    """The address of a Prometheus that asks the page with the token of a viewer."""
    file = AccountFile(site.site.folder / "state" / "web", QUICK)
    token = file.add_token("prometheus", UserRole.VIEWER, "root", MADE, MADE + timedelta(days=36500))
    listen = f"{HOST}:{reserve_port(HOST)}"
    with page(site) as address, (tmp_path / "prometheus.log").open("wb") as log:
        config = configuration(tmp_path, address, token)
        argv = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}"]
        program = subprocess.Popen([*argv, f"--web.listen-address={listen}"], stdout=log, stderr=log)
        try:
            yield listen
        finally:
            program.kill()
            program.wait()


def targets(prometheus: str) -> set[tuple[str, str, str]] | None:
    """Return job, node and rack of each target; None while Prometheus does not answer."""
    try:
        with urllib.request.urlopen(f"http://{prometheus}/api/v1/targets?state=active", timeout=600) as answer:
            found = json.load(answer)["data"]["activeTargets"]
    except OSError:
        return None
    nodes = [one["labels"] for one in found if one["labels"]["job"] != "clusterctl"]
    return {(labels["job"], labels["instance"], labels["rack"]) for labels in nodes}


def value(prometheus: str, query: str) -> float | None:
    """Return the value of a query with one series; None while there is none."""
    try:
        with urllib.request.urlopen(f"http://{prometheus}/api/v1/query?query={quote(query)}", timeout=600) as answer:
            found = json.load(answer)["data"]["result"]
    except OSError:
        return None
    return float(found[0]["value"][1]) if found else None


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed")
def test_a_node_appears_when_it_is_installed_and_goes_when_it_is_retired(site: SiteContext, prometheus: str) -> None:
    """n2 has a BMC and no address at first: its exporters come with the address, and go with the node. The page's own
    metrics are scraped with the same token.
    """
    n1 = {("node_exporter", "n1", "A01"), ("bmc", "n1", "A01")}
    n2 = {("node_exporter", "n2", "A01"), ("bmc", "n2", "A01")}
    assert eventually(lambda: targets(prometheus) == n1, WAIT_S), targets(prometheus)
    gold = 'sum(clusterctl_nodes{job="clusterctl",stage="gold"})'
    assert eventually(lambda: value(prometheus, gold) == 1, WAIT_S), "the page's own metrics are not scraped"
    site.journal.append([new_event("node", "id-n2", Kind.NODE_ADDRESSED, {"address": HOST})])
    assert eventually(lambda: targets(prometheus) == n1 | n2, WAIT_S), targets(prometheus)
    site.journal.append([new_event("node", "id-n1", Kind.NODE_RETIRED, {"reason": "sold"})])
    assert eventually(lambda: targets(prometheus) == n2, WAIT_S), targets(prometheus)


def test_without_a_token_no_node_is_named(site: SiteContext, tmp_path: Path) -> None:
    browser = Browser(site, access(tmp_path), headers={})
    refused = browser.get("/api/v1/scrape-targets")
    assert refused.status_code == 401
    assert "n1" not in refused.text
