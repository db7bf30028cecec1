"""The page at /docs: the OpenAPI document as one HTML page that needs nothing from elsewhere."""

from __future__ import annotations

import json
from html import escape
from typing import Any

Json = dict[str, Any]

STYLE = """
:root { color-scheme: light dark; --text: #1c2530; --soft: #5a6775; --back: #ffffff; --card: #f5f7f9; --line: #d9dfe5;
  --link: #0b62b0; --post: #1f6f43; --get: #0b5cab; --delete: #a4262c; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e9ee; --soft: #9aa7b4; --back: #12171d; --card: #1b222a;
  --line: #323c47; --link: #7db8f0; --post: #7fd1a4; --get: #85bdf5; --delete: #f19a9e; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { margin: 0 0 .25rem; font-size: 1.6rem; } h2 { margin: 2.5rem 0 .75rem; font-size: 1.25rem; }
p { margin: .4rem 0; } a { color: var(--link); } .soft { color: var(--soft); }
nav { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: .15rem 1.5rem;
  margin-top: 1rem; }
nav a { text-decoration: none; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
section { border: 1px solid var(--line); border-radius: .5rem; padding: .8rem 1rem 1rem; margin: 0 0 1rem; }
section > h3 { margin: 0; font-size: 1.05rem; overflow-wrap: anywhere; } h4 { margin: 1rem 0 .3rem; font-size: .95rem; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .86rem; }
pre { background: var(--card); border-radius: .35rem; padding: .6rem .8rem; margin: .3rem 0; overflow-x: auto; }
.method { display: inline-block; min-width: 3.6rem; font-weight: 700; font-size: .85rem; }
.post { color: var(--post); } .get { color: var(--get); } .delete { color: var(--delete); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-top: 1px solid var(--line); }
thead th { border-top: 0; color: var(--soft); font-weight: 600; } td:first-child { white-space: nowrap; }
td:last-child { width: 100%; } pre { white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 40rem) { thead { display: none; } tr { display: block; border-top: 1px solid var(--line);
  padding: .35rem 0; } td { display: block; border: 0; padding: 0; } td:first-child { white-space: normal; } }
summary { cursor: pointer; color: var(--soft); margin-top: .8rem; }
"""


def page(document: Json) -> bytes:
    """Return the page of an OpenAPI document."""
    operations = [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = document["components"]["schemas"]
    token = any("security" in operation for _, _, operation in operations)
    info = document["info"]
    index = "".join(
        f'<a href="#{_id(method, path)}">{_method(method)} {escape(path)}</a>' for method, path, _ in operations
    )
    parts = [
        f"<h1>{escape(info['title'])} <span class=soft>{escape(info['version'])}</span></h1>",
        f"<p>{escape(info['description'])}</p>",
        '<p>For programs: <a href="/openapi.json">/openapi.json</a>. Every failure is an '
        '<a href="#ErrorOut">ErrorOut</a>.</p>',
    ]
    if token:
        parts.append(
            "<p>This service asks for a token: <code>Authorization: Bearer TOKEN</code>. The curl lines take it from "
            "the variable <code>TOKEN</code>.</p>"
        )
    parts += [f"<nav>{index}</nav>", "<h2>Endpoints</h2>"]
    parts += [_operation(method, path, operation) for method, path, operation in operations]
    parts.append("<h2>Messages</h2>")
    parts += [_schema(name, schema) for name, schema in schemas.items()]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>rarestream: interface</title>'
        f"<style>{STYLE}</style></head><body><main>{''.join(parts)}</main></body></html>"
    ).encode()


def _id(method: str, path: str) -> str:
    return f"{method}{path.replace('/', '-')}"


def _method(method: str) -> str:
    return f'<span class="method {method}">{method.upper()}</span>'


def _operation(method: str, path: str, operation: Json) -> str:
    parts = [
        f'<section id="{_id(method, path)}"><h3>{_method(method)} <code>{escape(path)}</code></h3>',
        f"<p>{escape(operation['summary'])}. {escape(operation.get('description', ''))}</p>",
    ]
    if operation.get("parameters"):
        rows = [
            [
                f"<code>{escape(parameter['name'])}</code>",
                parameter["in"],
                _kind(parameter["schema"]),
                escape(parameter["description"]),
            ]
            for parameter in operation["parameters"]
        ]
        parts.append("<h4>Parameters</h4>" + _table(["name", "in", "type", ""], rows))
    content = operation.get("requestBody", {}).get("content", {})
    if content:
        rows = [[f"<code>{escape(media)}</code>", _kind(body["schema"])] for media, body in content.items()]
        parts.append("<h4>Body</h4>" + _table(["Content-Type", "schema"], rows))
    examples = content.get("application/json", {}).get("examples", {})
    bodies = [example["value"] for example in examples.values()]
    parts.append("<h4>Try it</h4>")
    parts += [f"<pre>{escape(curl(method, path, operation, body))}</pre>" for body in bodies or [None]]
    answers = []
    for status, answer in operation["responses"].items():
        kinds = "; ".join(
            _kind(body["schema"]) if media == "application/json" else f"<code>{escape(media)}</code>"
            for media, body in answer.get("content", {}).items()
        )
        answers.append([status, kinds, escape(answer["description"])])
    good = [answer for answer in answers if answer[0] < "300"]
    bad = [answer for answer in answers if answer[0] >= "300"]
    parts.append("<h4>Answers</h4>" + _table(["status", "body", ""], good))
    if bad:
        parts.append("<details><summary>Failures</summary>" + _table(["status", "body", ""], bad) + "</details>")
    return "".join(parts) + "</section>"


def curl(method: str, path: str, operation: Json, body: object) -> str:
    """Return a line that a shell runs. The address is that of a service that was started without options."""
    words = ["curl"]
    if path == "/events":
        words.append("-N")
    if method != "get":
        words += ["-X", method.upper()] if body is None else []
    if "security" in operation:
        words.append('-H "Authorization: Bearer $TOKEN"')
    url = f"http://127.0.0.1:8080{path}"
    if body is not None:
        text = json.dumps(body).replace("'", "'\\''")
        return f"{' '.join([*words, url])} \\\n  -H 'Content-Type: application/json' \\\n  -d '{text}'"
    if "application/octet-stream" in operation.get("requestBody", {}).get("content", {}):
        return f"{' '.join([*words, url])} \\\n  -H 'Content-Type: application/octet-stream' --data-binary @new.rare"
    if path == "/model/file":
        words += ["-o", "model.rare"]
    return " ".join([*words, url])


def _schema(name: str, schema: Json) -> str:
    parts = [f'<section id="{name}"><h3>{escape(name)}</h3><p>{escape(schema.get("description", ""))}</p>']
    if "properties" in schema:
        required = schema.get("required", [])
        rows = [
            [
                f"<code>{escape(field)}</code>",
                _kind(part),
                ("" if field in required else "Optional. ") + escape(part.get("description", "")),
            ]
            for field, part in schema["properties"].items()
        ]
        parts.append(_table(["field", "type", ""], rows))
    else:
        parts.append(f"<p>{_kind(schema)}</p>")
    parts += [f"<pre>{escape(json.dumps(example))}</pre>" for example in schema.get("examples", [])]
    return "".join(parts) + "</section>"


def _kind(schema: Json) -> str:
    """A schema in a few words, as HTML."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        kinds = [_kind(part) for part in schema["anyOf"]]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in schema:
        return ", ".join(escape(json.dumps(value)) for value in schema["enum"])
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return ", ".join(kind[:-1]) + f" or {kind[-1]}"
    if kind == "array":
        items = [_kind(part) for part in schema["prefixItems"]] if "prefixItems" in schema else None
        return f"[{', '.join(items)}]" if items is not None else f"list of {_kind(schema.get('items', {}))}"
    if schema.get("format") == "binary" or "contentMediaType" in schema:
        return escape(schema.get("description", "bytes"))
    if kind == "object" and "additionalProperties" in schema and schema["additionalProperties"]:
        return f"object of {_kind(schema['additionalProperties'])}"
    if "minimum" in schema and "maximum" in schema:
        return f"{kind}, {schema['minimum']:g} to {schema['maximum']:g}"
    return escape(str(kind))


def _table(heads: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
