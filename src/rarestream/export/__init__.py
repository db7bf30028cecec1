"""Models in formats that score where Python is not: ONNX, SQL, C, JavaScript, and weights as text."""

from rarestream.export.exporting import Exported, export, format_names

__all__ = ["Exported", "export", "format_names"]
