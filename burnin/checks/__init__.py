"""One file per check: probes in, findings out. `clusterctl.burnin.registry` lists them."""
