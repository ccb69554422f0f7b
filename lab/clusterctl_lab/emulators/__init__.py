"""Emulators render the lab's machines: each answers as one external system (BMC, MAAS, fabric, tools) does."""
