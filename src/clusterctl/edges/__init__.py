"""Everything outside: one file or folder per thing we talk to. SiteAdapters fetch; `formats` parses."""
