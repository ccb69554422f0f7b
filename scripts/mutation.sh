#!/usr/bin/env bash
# Mutation tests of the modules that decide: changes each of their functions in many ways, and counts the changes that
# the tests of `tests/fleet` do not notice. mutmut runs on a copy, with an environment of its own, in build/mutation.
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

modules=(src/clusterctl/fleet/gate.py src/clusterctl/fleet/stages.py src/clusterctl/fleet/fold.py
    src/clusterctl/fleet/hardware/disk_contract.py)
[ $# -eq 0 ] || modules=("$@")
work=build/mutation
rm -rf "$work/copy"
mkdir -p "$work/copy"
[ -x "$work/env/bin/mutmut" ] || { python3 -m venv "$work/env" && "$work/env/bin/pip" install --quiet 'mutmut==3.8.1'; }
git ls-files -z -- ':!docs/soak' | tar --create --null --files-from=- | tar --extract --directory="$work/copy"
site=$("$work/env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
ours=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
printf '%s\n' "$PWD/$work/copy/mutants/"{src,cli,burnin,lab} "$ours" > "$site/clusterctl.pth"
cd "$work/copy"
{
    printf '\n[tool.mutmut]\nsource_paths = ["src/clusterctl"]\n'
    printf 'only_mutate = [%s]\n' "$(printf '"%s", ' "${modules[@]}")"
    printf 'also_copy = [%s]\n' "$(find . -mindepth 1 -maxdepth 1 ! -name tests ! -name pyproject.toml -printf '"%P", ')"
    printf 'pytest_add_cli_args_test_selection = ["tests/fleet"]\npytest_add_cli_args = ["-p", "no:cacheprovider"]\n'
} >> pyproject.toml
../env/bin/mutmut run | tail -c 200
../env/bin/mutmut results
