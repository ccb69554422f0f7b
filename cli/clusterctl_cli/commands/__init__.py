"""One verb a file; imported only when called."""
