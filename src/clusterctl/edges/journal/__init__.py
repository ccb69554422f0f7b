"""The journal on a SQL database: SQLite by default, PostgreSQL by URL."""

from clusterctl.edges.journal.claims import Holder
from clusterctl.edges.journal.journal import SqlJournal, open_journal

__all__ = ["Holder", "SqlJournal", "open_journal"]
