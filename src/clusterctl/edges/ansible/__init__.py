"""Ansible, behind the port `Playbooks`: changes hosts, and says of each one what became of it."""
