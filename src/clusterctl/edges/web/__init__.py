"""What the web page has outside of the journal: its users and tokens, its identity provider, its certificate."""
