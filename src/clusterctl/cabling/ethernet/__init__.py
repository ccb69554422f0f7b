"""An Ethernet plan compared with what LLDP reports."""
