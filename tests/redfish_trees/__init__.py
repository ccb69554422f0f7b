"""Redfish trees of real BMCs as data cases: a folder each with `tree.yml` and `truth.yml`; README.md explains both."""
