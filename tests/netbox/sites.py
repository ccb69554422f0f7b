"""Site directories that import from an emulated NetBox."""

from __future__ import annotations

from pathlib import Path

from tests.netbox.emulator import TOKEN

SITE = """\
version: 1
name: hall-1
nodes: {{csv: nodes.csv}}
bmc: {{password: {{file: secrets/bmc}}, first_use: pin}}
skus: [dell-xe9680-h100]
provisioning: {{backend: existing}}
ssh: {{private_key: secrets/key}}
fabric: {{plan: wiring.csv, ethernet: ethernet.csv}}
netbox:
  url: {url}
  allow_plain_http: {plain}
  token: {{file: secrets/netbox}}
  site: {site}
  node_roles: [{nodes}]
  fabric_roles: [{fabric}]
  ethernet_roles: [{ethernet}]
{more}"""


def site(folder: Path, url: str, more: str = "", **names: str) -> Path:
    """Write a site; `names` are NetBox's slugs: site, nodes, fabric, ethernet."""
    values = {"site": "hall-1", "nodes": "gpu", "fabric": "leaf, spine", "ethernet": "oob", **names}
    plain = str(url.startswith("http://")).lower()
    secrets = folder / "secrets"
    secrets.mkdir(parents=True, exist_ok=True)
    for name, text in {"netbox": TOKEN, "bmc": "bmc-password"}.items():
        (secrets / name).write_text(text)
        (secrets / name).chmod(0o600)
    (folder / "site.yml").write_text(SITE.format(url=url, plain=plain, more=more, **values))
    return folder
