"""Judgement of the GPU load."""
