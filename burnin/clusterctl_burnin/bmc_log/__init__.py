"""The BMC's event log, judged against the inventory."""
