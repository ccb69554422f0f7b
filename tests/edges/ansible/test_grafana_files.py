"""What the roles grafana and loki write, as far as it can be checked without the programs: the golden files, by their documented fields."""

from __future__ import annotations

from configparser import ConfigParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from scripts.grafana_dashboards import FOLDER, SOURCE
from tests.edges.ansible.role_cases import CASES, load
from tests.edges.ansible.support import DATA

SCHEMAS = yaml.safe_load((DATA / "grafana_schemas.yml").read_text())


def golden(role: str, name: str) -> list[Path]:
    found = sorted((CASES / role).glob(f"*/golden/{name}.j2"))
    assert len(found) == 2
    return found


@pytest.mark.parametrize(
    ("role", "name"), [("loki", "config.yml"), ("grafana", "datasources.yml"), ("grafana", "dashboards.yml")]
)
def test_a_file_has_documented_fields_alone(role: str, name: str) -> None:
    """A field with a wrong name or type would stop the program, or be ignored by it."""
    for path in golden(role, name):
        jsonschema.validate(yaml.safe_load(path.read_text()), SCHEMAS[f"{role}/{name}"])


def test_a_wrong_field_is_found() -> None:
    document = yaml.safe_load(golden("loki", "config.yml")[0].read_text())
    document["limits_config"]["retention"] = document["limits_config"].pop("retention_period")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMAS["loki/config.yml"])


def test_the_dashboards_find_their_source() -> None:
    """The provisioned data source has the uid that the panels name, and Grafana looks where the role writes."""
    for path in golden("grafana", "datasources.yml"):
        sources: list[dict[str, Any]] = yaml.safe_load(path.read_text())["datasources"]
        assert {source["uid"] for source in sources} >= {SOURCE.uid}
    variables = load("grafana", "vars/main.yml")
    (provider,) = yaml.safe_load(golden("grafana", "dashboards.yml")[0].read_text())["providers"]
    assert provider["options"]["path"] == variables["__grafana_boards_folder"]
    assert variables["__grafana_boards"] == sorted(path.stem for path in FOLDER.iterdir())


def test_the_configuration_is_read_as_grafana_reads_it() -> None:
    """No password stands in it, no user signs up, nothing is shown without a sign-in or reported to others."""
    for path in golden("grafana", "grafana.ini"):
        found = ConfigParser(interpolation=None)
        found.read_string(path.read_text())
        assert found["security"]["admin_password"] == "$__file{/etc/grafana/clusterctl-admin-password}"
        assert not found["users"].getboolean("allow_sign_up")
        assert not found["auth.anonymous"].getboolean("enabled")
        assert not found["analytics"].getboolean("reporting_enabled")
