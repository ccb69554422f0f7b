"""The connection plug-in of a play by the host itself: processes started here, as over SSH they are started there.

Ansible's own `local` puts tasks into the playbook's folder and their files beside the controller's; over SSH both are
the login's. Loaded by Ansible on the host, from the bundle; never imported by the controller.
https://docs.ansible.com/ansible/latest/dev_guide/developing_plugins.html#connection-plugins
"""

from __future__ import annotations

from ansible.plugins.connection.local import Connection as Local

DOCUMENTATION = """
    name: here
    short_description: run tasks on this host
    description: As local, with the folders that tasks find over SSH.
    author: clusterctl
    options:
        become_success_timeout:
            type: int
            default: 10
            description: Seconds in which become must succeed.
        become_strip_preamble:
            type: bool
            default: true
            description: Whether what become says by itself is taken from the output.
    extends_documentation_fragment:
        - connection_pipelining
"""


class Connection(Local):  # type: ignore[misc]  # ansible-core has no annotations that are told to others
    """`local` by another name, which has none of its exceptions."""

    transport = "here"
    _remote_is_local = False
