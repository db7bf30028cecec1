"""What schemathesis has to be told of our media types: their values are sent as they are."""

import json
from typing import Any

import schemathesis


@schemathesis.serializer("application/x-ndjson", "application/vnd.apache.arrow.stream")
def as_it_is(context: Any, value: Any) -> bytes:
    """The bytes of a body."""
    if isinstance(value, bytes):
        return value
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else json.dumps(value, default=str).encode()
