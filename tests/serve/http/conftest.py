from collections.abc import Iterator

import pytest

from tests.serve.http.serving import Served, serving


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running
