#!/usr/bin/env bash
# Compares the pinned Python packages with the Python Packaging Advisory Database (pip-audit). Exit code 1: a package has a
# known weakness; 3: the database cannot be reached, and nothing was compared. `sbom`: writes a bill of materials instead.
# Its own tools are pinned in requirements-audit.txt, in an environment of their own.
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

readonly tools=build/audit
# A release with a known weakness: an index that has no advisories has no use.
readonly weak=https://pypi.org/pypi/pyyaml/5.3/json
readonly bill=dist/clusterctl.cdx.json

install_tools() {
    [ -x "$tools/bin/pip-audit" ] && [ "$tools/bin/pip-audit" -nt requirements-audit.txt ] && return
    "$venv/bin/python" -m venv --clear "$tools"
    "$tools/bin/python" -m pip install --quiet --disable-pip-version-check --no-input -r requirements-audit.txt
}

if [ "${1:-}" = sbom ]; then
    install_tools
    mkdir -p "$(dirname "$bill")"
    "$tools/bin/cyclonedx-py" requirements requirements.txt --pyproject pyproject.toml --output-reproducible \
        --spec-version 1.6 --output-format JSON --output-file "$bill"
    log "$bill"
    exit
fi

curl --silent --fail --max-time 20 "$weak" | grep -q PYSEC- ||
    fail "the advisory database cannot be reached: no package was compared ($weak)"
install_tools
"$tools/bin/pip-audit" --progress-spinner off --format json --require-hashes --disable-pip \
    -r requirements.txt -r requirements-dev.txt 2>/dev/null | "$venv/bin/python" scripts/audit_verdict.py
