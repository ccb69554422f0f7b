"""Redfish resources → what they mean. Pure: whoever reads the BMC passes what it answered.

The way to use it: call with what was read so far; while `Wanted` comes back, read its paths and call again.
"""
