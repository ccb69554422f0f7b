"""Asks MAAS who our key is, as a run would, and its clock."""

from __future__ import annotations

from datetime import UTC, datetime

import requests

from clusterctl.edges.doctor.patient import Answer, offset
from clusterctl.edges.maas import MaasSettings
from clusterctl.edges.maas.api import MaasApi
from clusterctl.edges.maas.machines import Machines
from clusterctl.edges.site import Site
from clusterctl.edges.tls import TrustingAdapter
from clusterctl.fleet.errors import ClusterctlError
from clusterctl.ports import Clock, Deadline

MAAS_SECONDS = 6.0


def ask_maas(site: Site, clock: Clock) -> Answer:
    """Who our key is, which proves route, TLS and key; then MAAS's clock. Nothing where the site has none."""
    said = site.settings.maas
    if said is None:
        return Answer()
    try:
        settings = MaasSettings(
            url=said.url,
            api_key=site.maas_api_key(),
            series=said.series,
            ca_file=site.path(said.ca_file),
            tls_fingerprint=said.tls_fingerprint,
            allow_plain_http=said.allow_plain_http,
        )
        deadline = Deadline.after(MAAS_SECONDS)
        user = Machines(MaasApi(settings, clock)).whoami(deadline)
    except ClusterctlError as error:
        return Answer(error)
    return Answer(offset_s=_maas_offset(settings, deadline), note=user)


def _maas_offset(settings: MaasSettings, deadline: Deadline) -> float | None:
    """From a second answer, that of the version, which needs no key; None where it does not come."""
    with requests.Session() as session:
        session.trust_env = False
        session.mount("https://", TrustingAdapter(settings.trust, settings.trust.client()))
        try:
            seconds = max(deadline.remaining, 0.1)
            answer = session.get(f"{settings.base}/version/", timeout=seconds, allow_redirects=False)
        except requests.exceptions.RequestException:
            return None
    return offset(answer.headers.get("date"), datetime.now(UTC))
