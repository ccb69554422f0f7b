"""NVIDIA UFM: the client, the formats, and the watch of a fabric, against an emulator."""
