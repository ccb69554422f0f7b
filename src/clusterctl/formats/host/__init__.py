"""Text of a Linux host: kernel log, hardware, drives, network, services."""
