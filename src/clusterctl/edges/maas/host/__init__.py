"""Is the MAAS host ready to install this site's machines? Asks, judges, changes nothing."""

from clusterctl.edges.maas.host.examination import Examination, examine
from clusterctl.edges.maas.host.questions import Questions, Wanted

__all__ = ["Examination", "Questions", "Wanted", "examine"]
