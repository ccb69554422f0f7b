"""Programs that run on lab hosts in the place of Grafana's; the standard library only."""
