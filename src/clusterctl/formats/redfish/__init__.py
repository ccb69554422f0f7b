"""Redfish resources → what they mean. Pure: the caller reads the BMC and passes its answers.

The way to use it: call with what was read so far; while `Wanted` comes back, read its paths and call again.
"""
