"""`clusterctl cable report`: one page that needs nothing else, with the state of the fabric."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

import clusterctl_cli
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl_cli.commands.cable_report import report
from tests.formats.infiniband import printers

FABRIC = printers.two_switches()
SCRIPT = Path(clusterctl_cli.__file__).parent / "templates/cable_report.js"
EVIL = "node001<script>alert(1)</script> mlx5_0"
VOID = {"meta", "br", "input"}


class Reading(HTMLParser):
    """Every tag closed, what it would load or run, ids, and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.targets: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "data", "action") and not value.startswith("#"):
                self.loads.append(value)
            if name == "href" and value.startswith("#"):
                self.targets.add(value[1:])
            if name == "id":
                self.ids.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def plan_of(fabric: Fabric) -> str:
    rows = ["source_device,source_port,destination_device,destination_port,rack,unit"]
    for number, link in enumerate(fabric.links):
        a, b = (fabric.devices[end.guid].description for end in (link.a, link.b))
        host = " " in b
        device, port = b.split() if host else (b, str(link.b.number))
        rows.append(f"{a},{link.a.number},{device},{port},{'A01' if host else ''},{number + 1 if host else ''}")
    return "\n".join(rows) + "\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    quiet, ill = ({FABRIC.links[0].a: {"SymbolErrorCounter": count}} for count in (1, 90))
    texts = {
        "plan": plan_of(FABRIC),
        "fabric": printers.ibnetdiscover(FABRIC),
        "cut": printers.ibnetdiscover(Fabric(FABRIC.devices, FABRIC.links[:-1])),
        "slow": printers.ibnetdiscover(Fabric(FABRIC.devices, (replace(FABRIC.links[0], width=1), *FABRIC.links[1:]))),
        "evil": printers.ibnetdiscover(FABRIC).replace("node001 mlx5_0", EVIL),
        "c0": "# 2026-01-31T08:00:00Z\n" + printers.ibqueryerrors(FABRIC, quiet),
        "c1": "# 2026-01-31T08:15:00Z\n" + printers.ibqueryerrors(FABRIC, quiet),
        "c2": "# 2026-01-31T08:30:00Z\n" + printers.ibqueryerrors(FABRIC, ill),
        "pairs": '{"at_least": 360, "pairs": [{"from": "n1", "to": "n2", "value": 391.5},'
        ' {"from": "n2", "to": "n1", "value": 200}]}',
        "junk": '{"at_least": 360, "pairs": [{"from": "n1", "to": "n2", "value": "fast"}]}',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(files: Path, fabric: str, *more: str, counters: tuple[str, ...] = ()):
    args = ["--plan", files / "plan", "--fabric", files / fabric, "--html", files / "out.html", *more]
    args += [word for name in counters for word in ("--counters", files / name)]
    return CliRunner().invoke(report, [str(arg) for arg in args])


def made(files: Path, fabric: str, *more: str, code: int, counters: tuple[str, ...] = ()) -> str:
    result = run(files, fabric, *more, counters=counters)
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert result.exit_code == code
    text = (files / "out.html").read_text()
    page = Reading(text)
    assert page.open == []
    assert page.loads == []
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert script == SCRIPT.read_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}';" in text
    assert "@import" not in text
    assert "url(http" not in text
    assert len(page.ids) == len(set(page.ids))
    assert page.targets <= set(page.ids)
    return text


def test_all_as_planned(files):
    """A fabric as planned is reported as such, with exit code 0; that no counter was read is reported as well."""
    text = made(files, "fabric", code=0)
    assert "All as planned" in text
    assert "the health of links is not measured" in text
    assert "every link proven healthy" not in text


def test_a_missing_link(files):
    """A cut link stands in the rack's list with its action, as a drawn curve, and at both devices in the table."""
    text = made(files, "cut", code=1)
    assert re.search(r"→ leaf-\d port 5: plug in", text)
    assert 'class="curve missing' in text
    assert text.count("leaf-1 port 5 – leaf-2 port 5: missing: planned, not seen") == 2


def test_a_slow_link(files):
    """It is drawn in a kind of line of its own, and both its devices are marked."""
    text = made(files, "slow", code=1)
    assert re.search(r'<h3 id="rack-1">Rack A01</h3>', text)
    assert '<path class="curve slow"' in text
    assert text.count('<a class="tile bad"') == 2


def test_foreign_text_stays_text(files):
    """What a device calls itself never becomes part of the page's structure."""
    text = made(files, "evil", code=1)
    assert "&lt;script&gt;alert(1)" in text


def test_counters_over_time(files):
    """Errors are shown in the interval in which they came, and judged over all of them."""
    text = made(files, "fabric", code=1, counters=("c0", "c1", "c2"))
    assert "0 s to 15 min: 0 errors; 15 min to 30 min: 89 errors" in text
    assert "bit errors" in text
    assert "5 of 6 links added no error" in text


def test_pairs(files):
    """The slow direction is below the limit and listed; the other is not."""
    text = made(files, "fabric", "--pairs", str(files / "pairs"), code=0)
    assert "2 measurements, 1 below 360 Gb/s" in text
    assert "<td>n2</td><td>n1</td>" in text
    assert "<td>n1</td><td>n2</td>" not in text


@pytest.mark.parametrize(
    ("more", "counters", "words"),
    [((), ("c0",), "one reading"), ((), ("c1", "c0"), "not after"), (("--pairs", "junk"), (), "pairs.0.value")],
)
def test_what_is_not_understood_is_refused(files, more, counters, words):
    """One reading, readings out of order, and measurements that are no numbers: nothing is written."""
    found = run(files, "fabric", *(str(files / word) if word == "junk" else word for word in more), counters=counters)
    assert isinstance(found.exception, UsageError)
    assert words in str(found.exception)
    assert not (files / "out.html").exists()


def test_nothing_is_replaced_unasked(files):
    """An existing report stays, unless --force is given."""
    (files / "out.html").write_text("mine")
    assert isinstance(run(files, "fabric").exception, UsageError)
    assert (files / "out.html").read_text() == "mine"
    made(files, "fabric", "--force", code=0)


def test_without_a_plan(files):
    """The page has a note that no plan was given, and the rules that were found."""
    result = CliRunner().invoke(report, ["--fabric", str(files / "fabric"), "--html", str(files / "out.html")])
    assert result.exit_code == 1
    text = (files / "out.html").read_text()
    assert "No plan was given" in text
    assert "not judged" in text


def test_port_maps(files):
    """Each switch has a map of its ports with their far ends; the map of one with a missing link is open."""
    text = made(files, "cut", code=1)
    assert re.search(r'<details class="ports" [^>]*open><summary>leaf-1', text)
    assert re.search(r'<li class="cell missing"><b>5</b> leaf-2 port 5 <i>missing</i></li>', text)
    assert re.search(r'<li class="cell fine"><b>1</b> node', text)


def test_racks(files):
    """Devices with a place are drawn in their rack."""
    text = made(files, "fabric", code=0)
    assert "<figcaption>A01</figcaption>" in text
    assert "<title>U1 node" in text


def test_thousands_of_cables(tmp_path):
    """With 4,096 cables the page is whole, and small enough to mail: each switch has its ports, open where one is wrong."""
    case = Path(__file__).parents[2] / "cabling/captures/cases/ndr-fat-tree-4096"
    for name, file in (("plan", "plan.csv.gz"), ("large", "capture.ibnetdiscover.gz")):
        (tmp_path / name).write_bytes((case / file).read_bytes())
    text = made(tmp_path, "large", code=1)
    opened = re.findall(r'<details class="ports" [^>]*open><summary>([\w-]+)', text)
    assert set(opened) == {"ib-leaf-004", "ib-leaf-012", "ib-leaf-054", "ib-spine-006"}
    assert text.count('<details class="ports" ') == 64 + 32
    assert text.count('<li class="cell missing">') == 5
    assert len(text) < 2_000_000
