"""One module per check. Each module defines `CHECK`; `clusterctl_burnin.registry` finds it."""
