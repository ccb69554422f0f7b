"""What can be written to a BMC: one file for each Redfish service. Each takes from the profile's `Paths` where it is,
and has functions that render its resources as the DMTF schema has them, for profiles to build on.
"""
