"""One step a file; imported only when called."""
