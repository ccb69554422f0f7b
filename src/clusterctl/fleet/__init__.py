"""What a fleet is: nodes, events, verdicts and the decisions on them. Pure: no clock, no disk, no network."""
