"""Ansible, behind the port `Playbooks`: changes hosts, and reports the outcome of each."""
