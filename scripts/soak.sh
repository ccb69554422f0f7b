#!/usr/bin/env bash
# Runs the long campaigns and keeps their output, dated, in docs/soak/. Arguments go to pytest.
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

export CLUSTERCTL_HYPOTHESIS=exploring # other examples in each run; make test has the same in each
mkdir -p docs/soak
report=docs/soak/$(date -u +%Y-%m-%d).md
status=0
{
    printf '# Soak of %s UTC\n\n' "$(date -u '+%Y-%m-%d %H:%M')"
    printf 'Commit %s, %s processors, Linux %s.\n\n```\n' "$(git describe --always --dirty)" "$(nproc)" "$(uname -r)"
    scripts/test.sh -m soak --timeout=0 --quiet --capture=no "$@" || status=$?
    printf '```\n'
    exit "$status"
} | tee "$report" || status=$?
log "its output is kept in $report"
exit "$status"
