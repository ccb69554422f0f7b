"""What the installers of the distributions are told: Ubuntu's autoinstall, Debian's preseed. Pure."""

from clusterctl.edges.pxe.answers.job import AnswerJob, Series
from clusterctl.edges.pxe.answers.network import network_files
from clusterctl.edges.pxe.answers.webhook import words_of

__all__ = ["AnswerJob", "Series", "network_files", "words_of"]
