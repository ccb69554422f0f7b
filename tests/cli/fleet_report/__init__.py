"""The fleet report and the sheet of one node."""
