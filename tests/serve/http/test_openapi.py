"""The OpenAPI document: whole, true, and kept by every answer."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest

from rarestream.serve.http.docs_page import curl
from rarestream.serve.http.openapi import document
from rarestream.serve.rows import Limits
from tests.serve.http.schemathesis_run import run
from tests.serve.http.serving import Served, serving


def test_every_route_is_documented_and_every_field_described(served: Served) -> None:
    described = served.ask("GET", "/openapi.json").json
    routes = {(method.lower(), path) for method, path in served.runner.app.counts.routes if path != "/"}
    assert routes == {(method, path) for path, methods in described["paths"].items() for method in methods}
    for name, schema in described["components"]["schemas"].items():
        assert schema["description"], name
        for field, part in schema.get("properties", {}).items():
            assert "description" in part or "$ref" in part, f"{name}.{field}"
    names = [operation["operationId"] for methods in described["paths"].values() for operation in methods.values()]
    assert len(set(names)) == len(names)


def test_a_token_is_documented_where_it_is_needed() -> None:
    for token in (True, False):
        for path, methods in document(Limits(), token=token)["paths"].items():
            for operation in methods.values():
                free = path in ("/healthz", "/readyz", "/openapi.json", "/docs")
                assert ("security" in operation) == (token and not free)
                assert ("401" in operation["responses"]) == (token and not free)


def test_the_examples_and_curl_lines_work() -> None:
    with serving() as served:
        for path, methods in served.ask("GET", "/openapi.json").json["paths"].items():
            for method, operation in methods.items():
                examples = operation.get("requestBody", {}).get("content", {})
                for example in examples.get("application/json", {}).get("examples", {}).values():
                    assert served.ask(method.upper(), path, example["value"]).status == 200, example
                    line = curl(method, path, operation, example["value"]).replace(
                        "127.0.0.1:8080", f"127.0.0.1:{served.port}"
                    )
                    said = subprocess.run(
                        shlex.split(line.replace("\\\n", " ")), capture_output=True, text=True, check=True
                    )
                    assert "error" not in json.loads(said.stdout), said.stdout
                if "example" in examples.get("application/x-ndjson", {}):
                    lines = examples["application/x-ndjson"]["example"].encode()
                    assert served.ask("POST", path, lines, {"Content-Type": "application/x-ndjson"}).status == 200


@pytest.mark.filterwarnings("ignore")
def test_answers_keep_to_the_document() -> None:
    done = run(50, "--generation-deterministic", limit=900)
    assert done.returncode == 0, done.stdout + done.stderr
