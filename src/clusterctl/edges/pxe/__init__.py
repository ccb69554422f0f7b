"""clusterctl's own PXE: machines boot over the network, report themselves, and get an OS on the expected disk.

Two processes. The run has the records of the attempts (`attempt_store`), decides (`boot_handlers`) and answers the
installer service over a channel (`service_process`, `exchange`). The installer service (`web`, `app`, `files`) talks to
the network, has no privileges, and keeps nothing.
"""
