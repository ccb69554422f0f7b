# Everything that one does with a checkout. `make setup` first prints what it installs; the other targets run it.
.PHONY: help setup check format test test-wheel mutants audit sbom soak fault-table quirk-table operations-table first-day-page roles-table dashboards docs rehearse rehearse-down wheel requirements clean
.DEFAULT_GOAL := help

BIN := .venv/bin
COMPILE := CUSTOM_COMPILE_COMMAND="make requirements" $(BIN)/pip-compile --quiet --strip-extras --no-annotate \
	--no-emit-index-url --no-emit-trusted-host --no-emit-options --generate-hashes

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Debian packages and .venv, leaving .venv/bin/clusterctl
	@scripts/setup.sh

check: setup ## linters, types, import contracts; advisories where their database can be reached
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/ansible-lint --offline roles playbooks
	scripts/audit.sh || [ $$? -eq 3 ]

format: setup ## let ruff put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: setup ## all tests but the soak ones; removes its labs
	@scripts/test.sh

test-wheel: setup ## the same tests against an installed wheel, outside the checkout
	@scripts/test-wheel.sh

mutants: setup ## mutation tests of listed modules that differ from the commit SINCE (HEAD^), for about a minute; soak runs all
	@nice $(BIN)/python -m tests.mutation --seconds 60 --changed-since $(or $(SINCE),HEAD^)

soak: setup ## the long campaigns; what they said stands in docs/soak/
	@scripts/soak.sh

fault-table: setup ## docs/reference/faults.md anew: what is found of each fault, or of those in FAULTS="A B", in one lab
	@CLUSTERCTL_WRITE_PAGES=1 CLUSTERCTL_FAULTS="$(FAULTS)" scripts/test.sh -m soak tests/e2e/test_faults.py

quirk-table: setup ## docs/reference/bmc-quirks.md anew: what the client makes of each vendor's BMC with each quirk
	@CLUSTERCTL_WRITE_PAGES=1 scripts/test.sh -m soak tests/edges/redfish/test_quirk_table.py

operations-table: setup ## docs/reference/bmc-operations.md anew: what can be done through which BMC
	@CLUSTERCTL_WRITE_PAGES=1 scripts/test.sh tests/edges/redfish/test_operations_table.py

first-day-page: setup ## the list in docs/how-to/first-day.md anew: what BMCs hear of the commands that only read
	@CLUSTERCTL_WRITE_PAGES=1 scripts/test.sh tests/cli/first_day

roles-table: setup ## docs/reference/roles.md anew: what each role does, and where it was seen at work
	@CLUSTERCTL_WRITE_PAGES=1 scripts/test.sh tests/edges/ansible/test_roles_page.py

dashboards: setup ## write the dashboards of the role grafana again
	$(BIN)/python -m scripts.grafana_dashboards

docs: setup ## build/docs: the documentation as a site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

rehearse: ## eight machines, three broken, from BMC addresses to gold or quarantine
	@scripts/rehearse.sh

rehearse-down: ## remove the rehearsal
	@scripts/rehearse-down.sh

audit: setup ## compare the pinned packages with the advisory database
	@scripts/audit.sh

sbom: setup ## dist/clusterctl.cdx.json: a bill of materials of the pinned packages (CycloneDX)
	@scripts/audit.sh sbom

wheel: setup ## dist/clusterctl-*.whl and dist/clusterctl_lab-*.whl
	$(BIN)/python -m build --wheel --no-isolation --outdir dist .
	$(BIN)/python -m build --wheel --no-isolation --outdir dist lab

requirements: setup ## pin the requirements files again, with digests
	$(COMPILE) --upgrade --output-file requirements.txt pyproject.toml
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"], sep="\n")' \
		| $(COMPILE) --upgrade --allow-unsafe --constraint requirements.txt --output-file requirements-dev.txt -
	printf 'pip-audit\ncyclonedx-bom\n' | $(COMPILE) --upgrade --allow-unsafe --output-file requirements-audit.txt -

clean: ## remove what was built; not a lab
	rm -rf .venv dist lab/dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
