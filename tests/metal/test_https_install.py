"""`clusterctl bootstrap` over HTTPS: authority and URI through the emulated BMC, then real firmware boots the deployer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from clusterctl_lab.metal.efi_variables import OPTION
from clusterctl_lab.vendor import Vendor
from lab.tests.lab_kit import RunningLab
from tests.edges.pxe.tls_kit import BootAuthority, site_files
from tests.metal.install_kit import INSTALL_S, MetalSite, metal_site
from tests.metal.metal_kit import console, needs_metal

NODE = "node001"
pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_metal, pytest.mark.timeout(3 * INSTALL_S)]


@pytest.fixture
def metal(tmp_path: Path) -> Iterator[MetalSite]:
    """One machine, whose vendor's BMC enrolls authorities."""
    with metal_site("metals", "10.164.0.0/16", tmp_path, 1, "--vendor", Vendor.SUPERMICRO.value) as found:
        yield found


def want_https(lab: RunningLab) -> None:
    """Give the site certificate, key and authority, and `provisioning.https`."""
    file = lab.site / "site.yml"
    text = file.read_text()
    address = yaml.safe_load(text)["provisioning"]["address"]
    site_files(lab.site / "boot", address)
    https = "https: {certificate: boot/boot.pem, private_key: boot/boot.key, ca: boot/boot-ca.pem}"
    file.write_text(re.sub(r"(?m)^  loader: .*$", f"  {https}", text))


def test_a_machine_is_installed_over_https(metal: MetalSite) -> None:
    """From power-off to sshd. Its firmware loaded one program from the URI, and nothing by TFTP; no secret is printed."""
    want_https(metal.lab)
    run = metal.install()
    assert run.wait() == 0, f"{run.stdout}\n{run.stderr}\n{metal.consoles()}"
    assert metal.site.stages() == {NODE: "installed"}
    assert metal.ssh(NODE, "hostname") == NODE
    printed = console(metal.lab, NODE)
    assert f'starting Boot0099 "{OPTION}"' in printed
    assert "iPXE" not in printed
    system = metal.lab.redfish(NODE, "/redfish/v1/Systems/1")
    (enrolled,) = metal.lab.redfish(NODE, system["Boot"]["Certificates"]["@odata.id"])["Members"]
    assert metal.lab.redfish(NODE, enrolled["@odata.id"])["CertificateString"] == BootAuthority().pem
