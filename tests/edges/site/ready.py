"""A site directory in which everything is right: what `clusterctl init` writes, with secrets and authorities in place,
and with few roles, which require nothing.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from clusterctl.edges.hostkeys import HostKeys
from clusterctl.edges.site.roles import shipped_roles, write_site

BMC_PASSWORD = "bmc-pass-7f3a"
MAAS_KEY = "consumer-1a:token-2b:secret-3c"
FILLED = {"str": "filled-in", "path": "/filled", "bool": True, "int": 1, "float": 1.5, "list": [], "dict": {}}
SECRETS = (BMC_PASSWORD, *MAAS_KEY.split(":"))


def write_ready_site(folder: Path) -> Path:
    """One machine, `node001`; `plan` and `bootstrap --dry-run` accept it as it is."""
    write_site(folder)
    site = folder / "site.yml"
    text = site.read_text().replace("{env: CLUSTERCTL_BMC_PASSWORD}", "{file: secrets/bmc-password}")
    site.write_text(lean(text))
    for name, text in {"bmc-password": BMC_PASSWORD, "maas-api-key": MAAS_KEY}.items():
        (folder / "secrets" / name).write_text(f"{text}\n")
        (folder / "secrets" / name).chmod(0o600)
    HostKeys(folder / "secrets").get("ssh_ed25519")
    for name in ("bmc-ca.pem", "maas-ca.pem"):
        (folder / name).write_bytes(authority())
    return folder


def lean(text: str) -> str:
    """The site file with roles that require no variable."""
    section = "configure:\n  roles: [base, ssh_access, node_exporter]\n  variables: {}\n\n"
    return re.sub(r"(?ms)^configure:\n.*?\n\n", section, text)


def filled_in(text: str) -> str:
    """The site file with something of the right type in place of each variable that an operator is to fill in."""
    known = {name: variable for role in shipped_roles().values() for name, variable in role.variables.items()}

    def value(line: re.Match[str]) -> str:
        variable = known[line[1]]
        reported = variable.choices[0] if variable.choices else FILLED[variable.type]
        return f"    {line[1]}: {json.dumps(reported)}"

    return re.sub(r"(?m)^    (\w+):  # fill in$", value, text)


@cache
def authority() -> bytes:
    """A certificate that signs itself, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority")])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    )  # fmt: skip
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
