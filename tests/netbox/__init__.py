"""NetBox: the emulator, worlds for it, and the tests of import and export."""
