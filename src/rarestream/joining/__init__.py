"""Joins events with labels that come later: by key, within a window of time, in bounded memory."""

from rarestream.joining.join import JoinCounts, Joined, LabelJoin, Refused

__all__ = ["JoinCounts", "Joined", "LabelJoin", "Refused"]
