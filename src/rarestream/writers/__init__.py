"""Blocks to bytes: the formats that rows are written in."""
