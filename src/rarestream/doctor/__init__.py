"""What is wrong with data, before anything is learned from them: columns, classes, leaks, duplicates, order."""

from rarestream.doctor.columns import Column
from rarestream.doctor.examine import Report, examine
from rarestream.doctor.problems import Problem

__all__ = ["Column", "Problem", "Report", "examine"]
