"""The site file teaches by its errors: each names file, line and field, and nothing is repeated that is secret."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from clusterctl.edges.site import contents, load_site
from clusterctl.edges.site.roles import write_site
from clusterctl.edges.site.textfile import there
from clusterctl.fleet.errors import UsageError
from clusterctl.site.nodes import canonical_address, expand_range
from tests.edges.site.ready import write_ready_site


def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    write_site(folder)
    return folder


def edited(tmp_path: Path, old: str, new: str) -> Path:
    folder = site(tmp_path)
    file = folder / "site.yml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    return folder


def test_a_new_site_is_valid_as_written(tmp_path: Path) -> None:
    """What `init` writes loads without a change; only its secrets are missing."""
    loaded = load_site(site(tmp_path))
    assert [node.name for node in loaded.nodes] == ["node001"]
    assert loaded.skus[0].gpu_count == 8
    with pytest.raises(UsageError, match="maas-api-key"):
        loaded.check_secrets()


WRONG = [
    ("name: my-site", "name: My Site", r"site\.yml:3 name: .*'My Site'"),
    ("version: 1", "version: 2", r"site\.yml:2 version: .*found 2"),
    (
        "series: jammy",
        "serie: jammy",
        r"site\.yml:\d+ provisioning\.serie: there is no such field .* did you mean series\?",
    ),
    ("series: jammy", "series: jammy\n  serie: x", r"site\.yml:\d+ provisioning\.serie: there is no such field"),
    ("install: 32", "install: 0", r"site\.yml:\d+ batch\.install: .*must be 1 or more, found 0"),
    ("install: 32", "install: many", r"batch\.install: .*found 'many'"),
    ("backend: maas", "backend: foreman", r"provisioning\.backend: .*'maas'.*found 'foreman'"),
    ("url: https://", "url: maas://", r"provisioning\.url: must be the URL of MAAS"),
    ("skus: [dell-xe9680-h100]", "skus: [nvidia-dgx]", r"site\.yml:\d+ skus\.0: there is no SKU 'nvidia-dgx'.*shipped"),
    ("skus: [dell-xe9680-h100]", "skus: []", r"skus: "),
    ("  csv: bmcs.csv", "  csv: absent.csv", r"site\.yml:\d+ nodes\.csv: .*absent\.csv does not exist"),
    ("  csv: bmcs.csv", "  csv: secrets", r"nodes\.csv: .*secrets is a directory"),
    ("  csv: bmcs.csv", "  ranges: [10.20.0.9-10.20.0.1]", r"nodes\.ranges: a range runs upwards"),
    ("  csv: bmcs.csv", "  list: [{name: a, bmc: host.example}]", r"nodes\.list\.0\.bmc: must be an IP address"),
    ("  csv: bmcs.csv", "  name_prefix: gpu", r"nodes: name the machines"),
    ("{env: CLUSTERCTL_BMC_PASSWORD}", "{env: A, file: b}", r"bmc\.password: give exactly one"),
    (
        "burnin: bootstrap",
        "burnin: hunt\nsuite: {pair_round: 2}",
        r"site\.yml:\d+ suite\.pair_round: there is no such field",
    ),
    ("burnin: bootstrap", "suite: {node_seconds: {stress_ng: 0}}", r"site\.yml:\d+ suite\.node_seconds\.stress_ng"),
    ("burnin: bootstrap", "burnin: hunt\nsuite: {pair_seconds: 0}", r"site\.yml:\d+ suite\.pair_seconds: .*found 0"),
    ("burnin: bootstrap", "burnin: bootstrap\nburnin: other", r"site\.yml:\d+ burnin: is written twice"),
    ("limits: {attempts: 2", "limits: {attempts: 2]", r"site\.yml:\d+: is not valid YAML"),
    ("  user: root", "\tuser: root", r"site\.yml:\d+: is indented with a tab"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_wrong_input_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    """A wrong field ends in one error that names file, line, field, what was found and what is allowed."""
    folder = edited(tmp_path, old, new)
    with pytest.raises(UsageError, match=message) as caught:
        load_site(folder)
    assert caught.value.remedy


@pytest.mark.parametrize(("given", "series"), [("22.04", "jammy"), ('"24.04"', "noble"), ("12", "bookworm")])
def test_a_release_is_known_by_its_version_too(tmp_path: Path, given: str, series: str) -> None:
    """YAML reads 22.04 as a number: it is the release all the same."""
    settings = load_site(edited(tmp_path, "series: jammy", f"series: {given}")).settings
    assert [installer.series for installer in settings.provisioning] == [series]


def test_a_site_changes_its_suite(tmp_path: Path) -> None:
    """The site's `suite` holds; the rest is the suite's."""
    changed = edited(tmp_path, "burnin: bootstrap", "burnin: nightly\nsuite: {pair_rounds: 3}")
    suite = contents.suite(load_site(changed))
    assert (suite.name, suite.pair_rounds, suite.pair_seconds) == ("nightly", 3, 10)


def test_a_suite_of_the_site_extends_others(tmp_path: Path) -> None:
    """Its own ones as well as shipped ones; `site.yml` and `extends` use the name of the file."""
    changed = edited(tmp_path, "burnin: bootstrap", "burnin: ours")
    (changed / "suites").mkdir()
    (changed / "suites/ours.yml").write_text("version: 1\nname: ours\nextends: less\ngroup_rounds: 3\n")
    (changed / "suites/less.yml").write_text("version: 1\nname: less\nextends: nightly\ndrop: [docker]\n")
    suite = contents.suite(load_site(changed))
    assert (suite.name, suite.pair_seconds, suite.group_rounds) == ("ours", 10, 3)
    assert "docker" not in suite.required
    (changed / "suites/less.yml").write_text("version: 1\nname: less\nextends: ours\n")
    with pytest.raises(UsageError, match=r"less\.yml:3 extends: these suites extend each other: ours → less → ours"):
        contents.suite(load_site(changed))


def test_a_suite_that_cannot_end_in_time_is_refused(tmp_path: Path) -> None:
    """Before anything is touched, and with the seconds that it takes."""
    long = edited(tmp_path, "burnin: bootstrap", "burnin: revalidate\nsuite: {pair_seconds: 1800}")
    with pytest.raises(UsageError, match=r"site\.yml.* the loads of the suite revalidate take 10860 s") as caught:
        contents.suite(load_site(long))
    assert "pair_seconds" in caught.value.remedy


def test_seconds_for_a_load_that_the_suite_does_not_have_are_refused(tmp_path: Path) -> None:
    """They would be ignored: a typing error is named with its place."""
    wrong = edited(tmp_path, "burnin: bootstrap", "burnin: hunt\nsuite: {node_seconds: {stress_ng: 9}}")
    words = r"site\.yml:\d+ suite\.node_seconds\.stress_ng: 'stress_ng' is no load of one node that the suite hunt has"
    with pytest.raises(UsageError, match=words):
        contents.suite(load_site(wrong))


def test_a_secret_in_the_file_is_refused_and_not_repeated(tmp_path: Path) -> None:
    """A password written where a reference belongs is an error that does not print the password."""
    folder = edited(tmp_path, "{env: CLUSTERCTL_BMC_PASSWORD}", "calvin-the-secret")
    with pytest.raises(UsageError, match=r"bmc\.password: a secret never stands in this file") as caught:
        load_site(folder)
    assert "calvin" not in str(caught.value)


def test_broken_encoding_names_the_line(tmp_path: Path) -> None:
    """Text that is not UTF-8 is refused with the line where it breaks."""
    folder = site(tmp_path)
    (folder / "bmcs.csv").write_bytes(b"name,bmc_address\nnode001,10.0.0.1\nn\xe9,10.0.0.2\n")
    with pytest.raises(UsageError, match=r"bmcs\.csv:3: is not UTF-8"):
        load_site(folder)


SHEETS = [
    ("name\nn1\n", r"bmcs\.csv:1: has no column bmc_address"),
    ("", r"bmcs\.csv:1: is empty"),
    ("name,bmc\nn1,10.0.0.300\n", r"bmcs\.csv:2 bmc: must be an IP address.*10\.0\.0\.300"),
    ("name,bmc\nn1,10.0.0.1\nn1,10.0.0.2\n", r"bmcs\.csv:3 name: n1 is given twice, first at .*:2"),
    ("name,bmc\nn1,10.0.0.1\nn2,10.0.0.1\n", r"bmcs\.csv:3 bmc: 10\.0\.0\.1 is given twice"),
    ("name,bmc,serial\nn1,10.0.0.1,X\nn2,10.0.0.2,X\n", r"bmcs\.csv:3 serial: X is given twice"),
    ("name,bmc,unit\nn1,10.0.0.1,top\n", r"bmcs\.csv:2 unit: must be a rack unit, 1 to 60, found 'top'"),
    ("name,bmc\nnode_1,10.0.0.1\n", r"bmcs\.csv:2 name: 'node_1' is no host name"),
    ("name,bmc\n,10.0.0.1\n", r"bmcs\.csv:2 name: the name is empty"),
    ("name,bmc\n", r"the site names no machine"),
    ("name,bmc,bmc_password\nn1,10.0.0.1,x\n", r"holds passwords and others may read it"),
]


@pytest.mark.parametrize(("text", "message"), SHEETS)
def test_a_wrong_sheet_is_named(tmp_path: Path, text: str, message: str) -> None:
    """A vendor's sheet that cannot be used is an error with line and column."""
    folder = site(tmp_path)
    (folder / "bmcs.csv").write_text(text)
    (folder / "bmcs.csv").chmod(0o644)
    with pytest.raises(UsageError, match=message):
        load_site(folder)


def test_vendor_headings_and_factory_passwords(tmp_path: Path) -> None:
    """Vendors' own headings are understood; a machine's factory password goes before the site's."""
    folder = site(tmp_path)
    sheet = folder / "bmcs.csv"
    sheet.write_text("Hostname,iDRAC_IP,Service Tag,Factory Password,Rack,U\nN7,10.0.0.7,7XKQ2Z3,s3cret,B2,u12\n")
    sheet.chmod(0o600)
    loaded = load_site(folder)
    (node,) = loaded.nodes
    assert (node.name, node.bmc, node.serial, node.rack, node.unit) == ("n7", "10.0.0.7", "7XKQ2Z3", "B2", 12)
    assert loaded.bmc_address("n7").password == "s3cret"
    assert "s3cret" not in repr(loaded)


def test_secret_files_must_be_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret file that others may read is refused with the command that mends it."""
    folder = site(tmp_path)
    monkeypatch.setenv("CLUSTERCTL_BMC_PASSWORD", "x")
    key = folder / "secrets" / "maas-api-key"
    key.write_text("a:b:c")
    key.chmod(0o644)
    loaded = load_site(folder)
    with pytest.raises(UsageError, match=r"mode 0644.*chmod 600"):
        loaded.maas_api_key()
    key.chmod(0o600)
    assert loaded.maas_api_key() == "a:b:c"


def test_a_file_that_cannot_be_looked_for_is_named(tmp_path: Path) -> None:
    """An error of the system that is not "not there" (a folder that may not be searched, a name too long) has path and
    remedy; a link to nowhere is there, and what is not there is not.
    """
    long = tmp_path / ("x" * 300)
    with pytest.raises(UsageError, match="has a name that is too long") as found:
        there(long)
    assert (found.value.where, found.value.remedy, found.value.exit_code) == (str(long), "check the path", 2)
    (tmp_path / "link").symlink_to("nowhere")
    assert [there(tmp_path / name) for name in ("link", "none")] == [True, False]


def test_a_vault_opens_with_its_password_file(tmp_path: Path) -> None:
    """An ansible-vault file gives its secret, and a wrong password is reported without a traceback."""
    from ansible.parsing.vault import VaultLib, VaultSecret

    folder = edited(tmp_path, "{env: CLUSTERCTL_BMC_PASSWORD}", "{vault: secrets/v, vault_password_file: secrets/p}")
    encrypted = VaultLib([("default", VaultSecret(b"open"))]).encrypt("the-bmc-password")
    for name, text in {"v": encrypted.decode(), "p": "open"}.items():
        (folder / "secrets" / name).write_text(text)
        (folder / "secrets" / name).chmod(0o600)
    assert load_site(folder).bmc_address("node001").password == "the-bmc-password"
    (folder / "secrets" / "p").write_text("wrong")
    with pytest.raises(UsageError, match="cannot be decrypted"):
        load_site(folder).bmc_address("node001")


def test_ranges() -> None:
    """Ranges count both ends; networks leave out network and broadcast address."""
    assert expand_range("10.0.0.254-10.0.1.1") == ("10.0.0.254", "10.0.0.255", "10.0.1.0", "10.0.1.1")
    assert expand_range("10.0.0.0/30") == ("10.0.0.1", "10.0.0.2")


def test_init_never_overwrites(tmp_path: Path) -> None:
    """A directory that holds anything is refused."""
    folder = site(tmp_path)
    with pytest.raises(UsageError, match="not empty"):
        write_site(folder)


def test_hosts_are_held_to_the_release_that_is_installed(tmp_path: Path) -> None:
    """Unless the site has another; an image of the site's own has a name that no host knows."""
    for series, release in (("jammy", "jammy"), ("ubuntu/noble", "noble"), ("our-image", "")):
        site = load_site(edited(tmp_path / release, "series: jammy", f"series: {series}"))
        assert site.settings.expected_release == release
    message = load_site(edited(tmp_path / "edited", "burnin: bootstrap", "burnin: bootstrap\nchecks: {release: noble}"))
    assert message.settings.expected_release == "noble"


def _slowly(text: str) -> str:
    """Return an address in canonical form, or why it is refused, by the standard library alone."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return "refused"
    one = not (found.is_unspecified or found.is_multicast or text == "255.255.255.255")
    return str(found) if one else "refused"


_EDGES = (
    "0",
    "00",
    "1",
    "01",
    "9",
    "10",
    "99",
    "100",
    "199",
    "200",
    "223",
    "224",
    "249",
    "250",
    "255",
    "256",
    "1000",
    "\u0661",
)


@pytest.mark.parametrize("first", _EDGES)
def test_an_address_is_read_as_the_standard_library_reads_it(first: str) -> None:
    """The short way for plain addresses accepts and refuses the same ones."""
    for last in _EDGES:
        for text in (f"{first}.0.1.{last}", f"{last}.{first}.255.9", f"{first}.{last}.1", f"{first}.1.1.{last}.1"):
            try:
                found = canonical_address(text)
            except ValueError:
                found = "refused"
            assert found == _slowly(text)


def test_a_replica_is_a_postgresql(tmp_path: Path) -> None:
    """A file is refused by its name in the site file, and so is a standby of a journal that is a file; a site without a
    replica has none.
    """
    write_ready_site(tmp_path)
    assert load_site(tmp_path).replica_url() == ""
    with (tmp_path / "site.yml").open("a") as file:
        file.write("\njournal_replica: postgresql+psycopg://reader@db2/clusterctl\n")
    with pytest.raises(UsageError, match="a SQLite file has no replica"):
        load_site(tmp_path).replica_url()
    with (tmp_path / "site.yml").open("a") as file:
        file.write("journal: postgresql+psycopg://clusterctl@db1/clusterctl\n")
    assert load_site(tmp_path).replica_url() == "postgresql+psycopg://reader@db2/clusterctl"
    (tmp_path / "site.yml").write_text(
        (tmp_path / "site.yml").read_text().replace("postgresql+psycopg://reader@db2/", "sqlite:///")
    )
    with pytest.raises(UsageError, match="no replica"):
        load_site(tmp_path).replica_url()
