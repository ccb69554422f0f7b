"""Everything outside: one file or folder per thing we talk to. Edges fetch; `formats` parses."""
