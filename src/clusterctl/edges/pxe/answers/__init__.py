"""Answers for the installers of the distributions: Ubuntu's autoinstall, Debian's preseed. Pure."""

from clusterctl.edges.pxe.answers.job import AnswerJob, ReleaseSeries, network_files
from clusterctl.edges.pxe.report import message_of

__all__ = ["AnswerJob", "ReleaseSeries", "message_of", "network_files"]
