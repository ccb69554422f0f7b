"""Faces render the lab's machines: each answers as one outside thing (BMC, MAAS, fabric, tools) would."""
