"""Active tests: the command, the parser, the judge."""
