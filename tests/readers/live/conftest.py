import pytest

from rarestream.readers.live import file, folder, stream


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    """What live sources wait for comes at once in these tests."""
    monkeypatch.setattr(stream, "FIRST_WAIT", 0.1)
    monkeypatch.setattr(stream, "TICK", 0.05)
    monkeypatch.setattr(file, "PAUSE", 0.01)
    monkeypatch.setattr(file, "GRACE", 0.1)
    monkeypatch.setattr(folder, "TICK", 0.05)
    monkeypatch.setattr(folder, "SETTLED", 0.1)
