"""One file per check: probes in, findings out. `clusterctl_burnin.registry` lists them."""
