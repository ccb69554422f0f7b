"""adopt: machines that are installed already are taken in, each refused by itself; nothing is written without consent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from clusterctl.edges.installers import NoInstaller
from clusterctl.edges.site import load_site
from clusterctl.fleet.decisions.permissions import PowerOrder
from clusterctl.fleet.errors import (
    AuthenticationError,
    ConflictError,
    NoBmcError,
    UnreachableError,
    UntrustedError,
    UsageError,
)
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.finding import Observed, Verdict
from clusterctl.fleet.node import Inventory, Serial, Stage
from clusterctl.operations import adopt, bmc_log, clear_log, plan, power, reinstall, wipe
from clusterctl.operations.adopt import AdoptRequest
from clusterctl.operations.bootstrap import RunResult
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline, HostAddress, OfferedKey, Ran
from tests.cli.nights import SilentOutside
from tests.edges.site.ready import write_ready_site
from tests.events import data_of
from tests.fleet.test_match import WHOLE
from tests.steps.fakes import FakeBmc, FakeBmcs, disks, identified

NAMES = ("n1", "n2", "n3")
SHEET = "name,bmc_address,serial,rack,unit,address\n" + "".join(
    f"n{at},10.0.0.{at},SN-n{at},A01,{4 * at},10.0.1.{at}\n" for at in (1, 2, 3)
)


MAKE = {"system-manufacturer": "Dell Inc.", "system-product-name": "PowerEdge XE9680"}
WITHOUT_BMC = SHEET.replace("n3,10.0.0.3,SN-n3", "n3,,")
"""n3 has no BMC, and the sheet does not know its serial."""


def machine(serial: str) -> Inventory:
    """A running machine of the site's SKU, whole and healthy."""
    root, *data = WHOLE.drives or ()
    drives = (replace(root, serial=Serial(f"DISK-{serial}")), *data)
    return replace(
        WHOLE, manufacturer="Dell Inc.", model="PowerEdge XE9680", serial=Serial(serial), on=True, drives=drives
    )


def public(name: str) -> str:
    """A key that is different for each host; its fingerprint is all that is ever computed of it."""
    return f"ssh-ed25519 {(name * 22)[:44].ljust(44, 'A')}"


@dataclass
class Keys:
    """The keys that hosts offer; a silent host offers none."""

    offered: dict[str, OfferedKey] = field(default_factory=lambda: {name: OfferedKey(public(name)) for name in NAMES})

    def read(self, name: str, address: str, deadline: Deadline) -> OfferedKey:
        if name not in self.offered:
            raise UnreachableError("no SSH server offers a key", where=f"{name} ({address}:22)", remedy="start sshd")
        return self.offered[name]


@dataclass
class Hosts:
    """Hosts that hold the keys in `keys`; `serials` is what their firmware reports."""

    keys: Keys
    serials: dict[str, str] = field(default_factory=lambda: {name: f"SN-{name}" for name in NAMES})
    errors: dict[str, Exception] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    disk: str = ""

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        if host.name in self.errors:
            raise self.errors[host.name]
        if self.keys.offered[host.name].public != host.host_key:
            raise UntrustedError("the host does not hold the key that was pinned", where=host.name)
        words = [word for word in argv if word not in ("sudo", "-n")]
        self.asked.append(words[0])
        if words[0] == "dmidecode":
            texts = {**MAKE, "system-serial-number": self.serials[host.name]}
            return Observed(Ran(0, f"{texts[words[-1]]}\n", "", 0.1), ())
        if words[-1].endswith("product_serial"):
            return Observed(Ran(0, f"{self.serials[host.name]}\n", "", 0.1), ())
        outputs = {
            "cat": f"0b00-7\n{self.names.get(host.name, host.name)}\n",
            **disks(self.disk or f"DISK-SN-{host.name}"),
        }
        return Observed(Ran(0, outputs[words[0]], "", 0.1), ())


@dataclass
class Outside(SilentOutside):
    """Meets `Adapters`: hosts and BMCs as given."""

    host_keys: Keys = field(default_factory=Keys)
    installer = NoInstaller()  # type: ignore[assignment]


@dataclass
class Cluster:
    """A site of three machines that were installed by hand, its hosts and its BMCs."""

    site: SiteContext
    hosts: Hosts
    bmcs: dict[str, FakeBmc]

    @property
    def context(self) -> SiteContext:
        def connect(site: object, _access: object) -> Outside:
            return Outside(site, shell=self.hosts, bmcs=FakeBmcs(self.bmcs), host_keys=self.hosts.keys)  # type: ignore[arg-type]

        return replace(self.site, connect=connect)  # type: ignore[arg-type]

    def adopt(self, *names: str, new_host_key: bool = False) -> RunResult:
        return adopt.run(self.context, AdoptRequest(nodes=names or NAMES, new_host_key=new_host_key), Control())

    def refused(self, *names: str) -> Mapping[str, str]:
        return adopt.preview(self.context, AdoptRequest(nodes=names or NAMES)).skipped

    def stages(self) -> dict[str, Stage]:
        return {node.name: node.stage for node in self.site.nodes()}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    write_ready_site(tmp_path)
    file = tmp_path / "site.yml"
    existing = "provisioning: {backend: existing}\n\n"
    file.write_text(re.sub(r"(?ms)^provisioning:\n.*?\n\n", existing, file.read_text()))
    (tmp_path / "bmcs.csv").write_text(SHEET)
    context = open_site(tmp_path)
    bmcs = {f"10.0.0.{name[1]}": FakeBmc(machine(f"SN-{name}")) for name in NAMES}
    yield Cluster(context, Hosts(Keys()), bmcs)
    context.journal.close()


def test_adopted_nodes_are_installed_and_no_disk_was_written(cluster: Cluster) -> None:
    """Serial, address and host key are journaled, the steps verify them, and nothing but reading was done."""
    result = cluster.adopt()
    assert result.skipped == {}
    assert set(cluster.stages().values()) == {Stage.INSTALLED}, [(node.cause, node.remedy) for node in result.nodes]
    for node in cluster.site.journal.states():
        assert (node.adopted, node.host_key, node.address) == (True, public(node.name), f"10.0.1.{node.name[1]}")
        assert node.intents == ()
        (event,) = (e for e in cluster.site.journal.history(Stream.NODE, node.id) if e.kind is Kind.NODE_ADOPTED)
        assert data_of(event)["trust"] == "operator"
        assert data_of(event)["serial"] == f"SN-{node.name}"
    assert set(cluster.hosts.asked) == {"dmidecode", "cat", "lsblk", "findmnt"}


def test_a_dry_run_shows_serial_and_fingerprint_and_writes_nothing(cluster: Cluster) -> None:
    """What the operator confirms is in the preview; a host that shows another key afterwards makes it void."""
    request = AdoptRequest(nodes=NAMES)
    shown = adopt.preview(cluster.context, request)
    for name, effect in zip(NAMES, shown.effects, strict=True):
        assert f"SN-{name}" in effect.text
        assert adopt.fingerprint(public(name)) in effect.text
    assert cluster.site.journal.summaries() == ()
    cluster.hosts.keys.offered["n2"] = OfferedKey(public("x"))
    with pytest.raises(ConflictError):
        adopt.run(cluster.context, request, Control(shown.digest))
    assert cluster.site.journal.summaries() == ()


def test_a_certificate_needs_no_comparison_by_the_operator(cluster: Cluster) -> None:
    """With certificates of the site's authority there is no warning to compare fingerprints."""
    for name in NAMES:
        cluster.hosts.keys.offered[name] = OfferedKey(public(name), certified=True)
    assert adopt.preview(cluster.context, AdoptRequest(nodes=NAMES)).warnings == ()
    cluster.hosts.keys.offered["n1"] = OfferedKey(public("n1"), refused="its certificate is not valid now")
    shown = adopt.preview(cluster.context, AdoptRequest(nodes=NAMES))
    assert "1 host key" in shown.warnings[0]
    assert "not valid now" in shown.effects[0].text


@pytest.fixture
def without_bmc(cluster: Cluster) -> Iterator[Cluster]:
    """The same cluster, but n3 has no BMC."""
    folder = cluster.site.site.folder
    (folder / "bmcs.csv").write_text(WITHOUT_BMC)
    context = open_site(folder)
    yield Cluster(context, cluster.hosts, {ip: bmc for ip, bmc in cluster.bmcs.items() if ip != "10.0.0.3"})
    context.journal.close()


def test_a_node_without_a_bmc_is_adopted_by_the_serial_of_its_host(without_bmc: Cluster) -> None:
    """The operator confirms the host's serial; the parts are left to the burn-in, and nothing is a failure."""
    shown = adopt.preview(without_bmc.context, AdoptRequest(nodes=("n3",)))
    assert "serial SN-n3 by its host alone" in shown.effects[0].text
    assert "no BMC shows 1 of these serials" in shown.warnings[-1]
    assert without_bmc.site.journal.summaries() == ()
    result = without_bmc.adopt()
    assert result.skipped == {}
    assert set(without_bmc.stages().values()) == {Stage.INSTALLED}, [(node.cause, node.remedy) for node in result.nodes]
    node = without_bmc.site.node("n3")
    assert (node.bmc, node.serial, node.sku) == ("", "SN-n3", without_bmc.site.node("n1").sku)
    verdicts = {finding.check: finding.verdict for finding in node.reports["discover"].findings}
    assert verdicts["identity"] is verdicts["sku_model"] is Verdict.PASS
    assert verdicts["bmc"] is verdicts["gpu_count"] is Verdict.NOT_APPLICABLE


def test_without_a_bmc_another_serial_than_the_sheets_or_the_confirmed_one_is_refused(without_bmc: Cluster) -> None:
    """The sheet's serial counts before the adoption, the confirmed one after it, also for another host key."""
    without_bmc.adopt("n3")
    without_bmc.hosts.serials["n3"] = "SN-other"
    again = AdoptRequest(nodes=("n3",), new_host_key=True)
    refused = adopt.preview(without_bmc.context, again).skipped
    assert "serial SN-other, and SN-n3 was expected" in refused["n3"]
    sheet = without_bmc.site.site.folder / "bmcs.csv"
    sheet.write_text(SHEET.replace("n2,10.0.0.2,SN-n2", "n2,,SN-sheet"))
    fresh = Cluster(open_site(sheet.parent), without_bmc.hosts, without_bmc.bmcs)
    with closing(fresh.site.journal):
        assert "serial SN-n2, and SN-sheet was expected" in fresh.refused("n2")["n2"]


def test_two_nodes_with_one_serial_are_refused_both(without_bmc: Cluster) -> None:
    """Two addresses of one host, or a board whose serial was never set: neither counts, and the others are adopted."""
    without_bmc.hosts.serials["n3"] = "sn-N2"
    refused = without_bmc.adopt().skipped
    assert set(refused) == {"n2", "n3"}
    assert "serial sn-N2, as n2 does" in refused["n3"]
    assert without_bmc.stages()["n1"] is Stage.INSTALLED
    assert "serial sn-N1, as n1 does" in _refused_after(without_bmc, "sn-N1")


def _refused_after(cluster: Cluster, serial: str) -> str:
    """Return why n3 is refused where its host shows that serial."""
    cluster.hosts.serials["n3"] = serial
    return cluster.adopt("n3").skipped["n3"]


def test_what_works_through_the_bmc_is_refused_for_a_node_without_one(without_bmc: Cluster) -> None:
    """Power, logs and passwords of the BMC: exit code 2 with the reason, and nothing is done to the other nodes."""
    without_bmc.adopt()
    request = power.PowerRequest(order=PowerOrder.CYCLE, nodes=("n1", "n3"), reason="test")
    with pytest.raises(NoBmcError, match="gives it no BMC") as caught:
        power.preview(without_bmc.context, request)
    assert (caught.value.where, caught.value.exit_code) == ("n3", 2)
    with pytest.raises(NoBmcError):
        clear_log.preview(without_bmc.context, clear_log.ClearLogRequest(nodes=("n3",), reason="test"))
    with pytest.raises(NoBmcError):
        bmc_log.read(without_bmc.context, "n3", Control())
    asked = power.status(without_bmc.context, ("n1", "n3"), Control())
    failed = {outcome.node: outcome.failure for outcome in asked.outcomes if outcome.failure}
    assert list(failed) == ["n3"]


def test_a_node_that_clusterctl_would_install_needs_a_bmc(cluster: Cluster) -> None:
    """Only backend existing does without; the error names line, column and what to do."""
    folder = cluster.site.site.folder
    (folder / "bmcs.csv").write_text(WITHOUT_BMC)
    file = folder / "site.yml"
    file.write_text(file.read_text().replace("{backend: existing}", "{backend: existing, nodes: [n1, n2]}"))
    with pytest.raises(UsageError, match="n3 has no address of its BMC") as caught:
        load_site(folder)
    assert "bmcs.csv:4 bmc_address" in caught.value.where


def test_a_sheet_of_hosts_alone_needs_no_column_for_bmcs(cluster: Cluster) -> None:
    """Names and addresses of hosts are enough; a sheet without either column is refused."""
    folder = cluster.site.site.folder
    (folder / "bmcs.csv").write_text("name,address\nn1,10.0.1.1\n")
    assert [node.bmc for node in load_site(folder).nodes] == [""]
    (folder / "bmcs.csv").write_text("name,serial\nn1,S1\n")
    with pytest.raises(UsageError, match="has no column bmc_address"):
        load_site(folder)


def silent_host(cluster: Cluster) -> None:
    del cluster.hosts.keys.offered["n2"]


def wrong_serial(cluster: Cluster) -> None:
    cluster.hosts.serials["n2"] = "SN-other"


def no_serial(cluster: Cluster) -> None:
    cluster.hosts.serials["n2"] = "To Be Filled By O.E.M."


def no_login(cluster: Cluster) -> None:
    cluster.hosts.errors["n2"] = AuthenticationError("the host refuses the key for ops", where="n2")


def silent_bmc(cluster: Cluster) -> None:
    cluster.bmcs["10.0.0.2"] = FakeBmc(UnreachableError("the BMC cannot be reached", remedy="check its cable"))


def not_in_the_sheet(cluster: Cluster) -> None:
    cluster.hosts.serials["n2"] = "SN-new"
    cluster.bmcs["10.0.0.2"] = FakeBmc(machine("SN-new"))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (silent_host, "no SSH server offers a key"),
        (wrong_serial, "shows the machine SN-n2, the host at 10.0.1.2 runs on SN-other"),
        (no_serial, "does not report the machine's serial"),
        (no_login, "the host refuses the key"),
        (silent_bmc, "the BMC cannot be reached"),
        (not_in_the_sheet, "SN-n2 was expected"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_bad_node_is_refused_alone(cluster: Cluster, spoil: object, reason: str) -> None:
    """The preview names the reason and what to do; the others are adopted, the exit code is 1."""
    assert callable(spoil)
    spoil(cluster)
    assert list(cluster.refused()) == ["n2"]
    assert reason in cluster.refused()["n2"]
    result = cluster.adopt()
    assert reason in result.skipped["n2"]
    assert result.exit_code == 1
    assert cluster.stages() == {"n1": Stage.INSTALLED, "n2": Stage.SEEN, "n3": Stage.INSTALLED}


def test_a_node_in_another_stage_is_refused_alone(cluster: Cluster) -> None:
    """A node that is installed already, in quarantine or held is not adopted; the reason is given."""
    identified(cluster.site.journal, "n2", "SN-n2", "configured")
    assert "it is configured already" in cluster.refused()["n2"]
    assert cluster.adopt().skipped.keys() == {"n2"}


def test_a_changed_host_key_is_refused_until_the_operator_gives_the_reason(cluster: Cluster) -> None:
    """The step finds it, adopt refuses it, and --new-host-key proves the machine again from install on."""
    cluster.adopt()
    cluster.hosts.keys.offered["n2"] = OfferedKey(public("y"))
    assert "is installed already" in cluster.refused("n2")["n2"]
    result = cluster.adopt("n2", new_host_key=True)
    assert result.skipped == {}
    node = cluster.site.node("n2")
    assert (node.stage, node.host_key) == (Stage.INSTALLED, public("y"))


def test_the_step_proves_the_name_again(cluster: Cluster) -> None:
    """A host of another name is stopped at install, with the way to repair it; nothing was changed on it."""
    cluster.hosts.names["n2"] = "elsewhere"
    cluster.adopt("n2")
    node = cluster.site.node("n2")
    assert (node.stage, node.stopped_at is not None) == (Stage.QUARANTINED, True)
    assert "is named elsewhere" in node.cause


def test_nodes_without_adoption_are_never_installed(cluster: Cluster) -> None:
    """Bootstrap's plan destroys nothing on a site of backend existing; the install step asks for adopt."""
    (first, *_) = plan.run(cluster.context, plan.PlanRequest()).nodes
    assert first.destroys == ""


def test_reinstall_and_erase_are_refused(cluster: Cluster) -> None:
    """Both with what to do instead, before anything is asked of a BMC."""
    cluster.adopt()
    with pytest.raises(UsageError, match="never writes to its disks") as caught:
        reinstall.preview(cluster.context, reinstall.ReinstallRequest(node="n1"))
    assert "--new-host-key" in caught.value.remedy
    with pytest.raises(UsageError, match="needs a BMC, and the site's own PXE"):
        wipe.preview(cluster.context, wipe.WipeRequest(node="n1", reason="old", adopted=True))


def test_another_root_disk_than_the_skus_is_a_warning(cluster: Cluster) -> None:
    """Another installer chose it; the disk that the host runs from is what the journal keeps."""
    cluster.hosts.disk = "DISK-other"
    cluster.adopt("n1")
    node = cluster.site.node("n1")
    report = node.reports["install"]
    assert {finding.check: finding.verdict for finding in report.findings} == {
        "install": Verdict.PASS,
        "root_disk_booted": Verdict.WARN,
        "data_disks": Verdict.NOT_APPLICABLE,
    }
    assert (node.stage, node.root_disk) == (Stage.INSTALLED, "DISK-other")
