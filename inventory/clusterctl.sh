#!/bin/sh
# Ansible's dynamic inventory of a clusterctl site, which CLUSTERCTL_SITE names (default: the current directory).
# It runs the clusterctl on PATH, else the one of this checkout.
if command -v clusterctl >/dev/null; then
    exec clusterctl inventory "$@"
fi
exec "$(dirname "$0")/../.venv/bin/clusterctl" inventory "$@"
