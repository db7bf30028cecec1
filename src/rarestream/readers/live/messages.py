"""Messages of brokers as lines: one message is one row, whatever bytes it has."""

from __future__ import annotations

from collections.abc import Sequence


def text_of(values: Sequence[bytes | None]) -> bytes:
    """Return messages as lines, one each; line ends inside a message become spaces, no message is an empty line."""
    try:
        text = b"\n".join(values)  # type: ignore[arg-type]  # None is rare
    except TypeError:
        values = [value or b"" for value in values]
        text = b"\n".join(values)  # type: ignore[arg-type]
    if text.count(b"\n") != len(values) - 1:
        text = b"\n".join(_one_line(value) if value and b"\n" in value else value or b"" for value in values)
    return text + b"\n"


def _one_line(value: bytes) -> bytes:
    return value.removesuffix(b"\n").removesuffix(b"\r").replace(b"\r\n", b" ").replace(b"\n", b" ")


class Once:
    """Notes that are shown once, however often there is a reason."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes
        self._said: set[str] = set()

    def say(self, note: str, subject: str = "") -> None:
        """Add a note, unless there was one before: the same, or another on this subject."""
        if (subject or note) not in self._said:
            self._said.add(subject or note)
            self._notes.append(note)
