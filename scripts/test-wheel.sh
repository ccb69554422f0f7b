#!/usr/bin/env bash
# Runs the same tests against an installed wheel, in a folder of its own that holds nothing else of the checkout.
# Arguments go to pytest.
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

folder=$(mktemp -d)
trap 'as_root rm -rf "$folder"' EXIT
log "building the wheel and installing it in $folder/venv"
"$venv/bin/python" -m build --wheel --no-isolation --outdir "$folder" . >/dev/null
"$venv/bin/python" -m build --wheel --no-isolation --outdir "$folder" lab >/dev/null
"$venv/bin/python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet -r requirements.txt -r requirements-dev.txt
"$folder/venv/bin/pip" install --quiet --no-deps "$folder"/clusterctl-*.whl "$folder"/clusterctl_lab-*.whl
# benchmarks make fleets and recordings for tests, record-compat the recorded output
cp -r tests "$folder/tests"
cp -r benchmarks "$folder/benchmarks"
mkdir "$folder/scripts"
cp scripts/record-compat "$folder/scripts/"
mkdir "$folder/lab"
cp -r lab/tests "$folder/lab/tests"
"$venv/bin/python" - >"$folder/pytest.ini" <<'SETTINGS'
import tomllib

settings = tomllib.load(open("pyproject.toml", "rb"))["tool"]["pytest"]["ini_options"]
print("[pytest]")
print("testpaths =", *settings["testpaths"])
print("pythonpath = .")
print("consider_namespace_packages = true")
print(f"addopts = {settings['addopts']}")
print("markers =", *settings["markers"], sep="\n    ")
SETTINGS
cd "$folder"
as_root venv/bin/python -m pytest -m "not soak" "$@"
