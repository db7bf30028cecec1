"""What each endpoint answers, and how what is wrong with a body is said."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rarestream import Model
from rarestream.serve.http import Settings
from rarestream.serve.http.application import Application
from rarestream.serve.options import Options
from rarestream.serve.rows import Limits
from rarestream.serve.service import Service
from tests.serve.http.serving import Served, serving, trained_model

ROW = {"site": "s3", "price": 2.5}


def ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def test_a_row_has_the_score_of_the_model(served: Served) -> None:
    answer = served.ask("POST", "/predict", {"row": ROW})
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["scores"] == [served.service.answering.score_one(ROW)]
    assert answer.json["ids"] is None


def test_many_rows_have_the_scores_of_each_alone(served: Served) -> None:
    rows = [{"site": f"s{i}", "price": i + 0.5} for i in range(7)]
    one_by_one = [served.ask("POST", "/predict", {"row": row}).json["scores"][0] for row in rows]
    assert served.ask("POST", "/predict", {"rows": rows}).json["scores"] == one_by_one
    lines = "\n".join(map(json.dumps, rows)).encode()
    for text in (lines, lines + b"\n", b"\n" + lines.replace(b"\n", b"\r\n\r\n") + b"\n\n"):
        answer = served.ask("POST", "/predict", text, {"Content-Type": "application/x-ndjson"})
        assert answer.json["scores"] == one_by_one


def test_arrow_in_arrow_out(served: Served) -> None:
    rows = [{"site": f"s{i}", "price": i + 0.5} for i in range(7)]
    answer = served.ask(
        "POST", "/predict", ipc(pa.Table.from_pylist(rows)), {"Content-Type": "application/vnd.apache.arrow.stream"}
    )
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
    table = pa.ipc.open_stream(answer.body).read_all()
    assert table.column_names == ["score", "probability"]
    said = served.ask("POST", "/predict", {"rows": rows}).json
    assert table["score"].to_pylist() == said["scores"]
    assert int(answer.headers["rarestream-sequence"]) == said["sequence"]
    assert int(answer.headers["rarestream-version"]) == said["version"]


def test_rows_are_learned_as_the_model_learns_them() -> None:
    expected = trained_model()
    with serving() as served:
        first = served.ask("POST", "/learn", {"row": ROW, "label": 1})
        assert first.json["learned"] == 1
        assert first.json["scores"] == [expected.learn_one(ROW, 1)]
        second = served.ask("POST", "/learn", {"rows": [ROW, ROW], "labels": [0, -1]})
        assert second.json["scores"] == [expected.learn_one(ROW, -1), expected.learn_one(ROW, -1)]
        assert second.json["sequence"] == first.json["sequence"] + 2
        lines = b'{"row": {"site": "s3"}, "label": 1}\n\n{"row": {"site": "s4"}, "label": 0}\n'
        third = served.ask("POST", "/learn", lines, {"Content-Type": "application/x-ndjson"})
        assert third.json["learned"] == 2, third
        assert served.ask("POST", "/predict", {"row": ROW}).json["sequence"] == third.json["sequence"]


def test_a_label_finds_its_row() -> None:
    with serving() as served:
        assert served.ask("POST", "/predict", {"row": ROW, "id": "a"}).json["ids"] == ["a"]
        answer = served.ask("POST", "/predict", {"rows": [ROW, ROW], "ids": ["b", "c"]})
        assert answer.json["stored"] == 2
        one = served.ask("POST", "/label", {"id": "a", "label": 1}).json
        assert one["learned"] == 1
        many = {"labels": [{"id": "b", "label": 0}, {"id": "a", "label": 1}, {"id": "z", "label": 1}]}
        answer = served.ask("POST", "/label", many).json
        assert (answer["learned"], answer["duplicate"], answer["unknown"]) == (1, ["a"], ["z"])
        lines = b'{"id": "c", "label": 1}\n'
        assert served.ask("POST", "/label", lines, {"Content-Type": "application/x-ndjson"}).json["learned"] == 1


def test_columns_are_named_for_arrow_bodies_only(served: Served) -> None:
    table = pa.Table.from_pylist([{"site": "s1", "price": 1.5, "y": 1, "h": 2.0}])
    kind = {"Content-Type": "application/vnd.apache.arrow.stream"}
    answer = served.ask("POST", "/learn?label=y&importance=h", ipc(table), kind)
    assert answer.status == 200 and answer.json["learned"] == 1, answer
    for query in ("label=", "label=none", "lable=y"):
        assert served.ask("POST", f"/learn?{query}", ipc(table), kind).status == 422
    assert served.ask("POST", "/learn?label=y", {"row": ROW, "label": 1}).status == 422
    answer = served.ask("POST", "/predict", b"no arrow", kind)
    assert (answer.status, answer.error["code"]) == (422, "bad_rows")


def test_an_idempotency_key_reaches_the_service() -> None:
    with serving() as served:
        body, key = {"row": ROW, "label": 1}, {"Idempotency-Key": "k 1"}
        first = served.ask("POST", "/learn", body, key).json
        again = served.ask("POST", "/learn", body, key).json
        assert not first["repeated"] and again["repeated"]
        assert again["sequence"] == first["sequence"]
        other = served.ask("POST", "/learn", {"row": ROW, "label": 0}, key)
        assert (other.status, other.error["code"]) == (422, "key_reused")
        for bad in ("", "x" * 256, "caf\xe9"):
            assert served.ask("POST", "/learn", body, {"Idempotency-Key": bad}).status == 422


BAD_BODIES = [
    ("/predict", b"", 400, "bad_json", "empty"),
    ("/predict", b"{", 400, "bad_json", "line 1, column 2"),
    ("/predict", b'{"row": {"a": 1},\n "id": }', 400, "bad_json", "line 2, column 8"),
    ("/predict", b'{"row": {"a": NaN}}', 400, "bad_json", "byte 14"),
    ("/predict", b'{"row": {"a": 1}} {}', 400, "bad_json", "trailing"),
    ("/predict", b'{"row": ' + b"[" * 100_000, 400, "bad_json", "nested"),
    ("/predict", b'{"row": {}, "id": "\xff"}', 400, "bad_json", "byte 19 of the body is 0xff"),
    ("/predict", b'{"row": {}, "\xff": 1}', 400, "bad_json", "not UTF-8"),
    ("/predict", b'{"row": {}, "id": "\\ud800"}', 400, "bad_json", "half a character"),
    ("/predict", b"[]", 422, "bad_request", "must be an object such as"),
    ("/predict", b"null", 422, "bad_request", "not null"),
    ("/predict", b"{}", 422, "bad_request", 'needs "row" or "rows"'),
    ("/predict", b'{"rwo": {}}', 422, "bad_request", 'did you mean "row"'),
    ("/predict", b'{"row": {}, "rows": []}', 422, "bad_request", "both"),
    ("/predict", b'{"row": {}, "ids": "3"}', 422, "bad_request", 'Unknown field "ids" (did you mean "id"?)'),
    (
        "/predict",
        b'{"row": {}, "id": 17}',
        422,
        "bad_request",
        "id must be text of 1 to 256 characters, not the number 17",
    ),
    ("/predict", b'{"row": {}, "id": ""}', 422, "bad_request", 'not text ""'),
    ("/predict", b'{"row": {}, "remember": 1}', 422, "bad_request", "remember must be true or false, not the number 1"),
    ("/predict", b'{"rows": {}}', 422, "bad_request", "rows must be a list, not an object {}"),
    ("/predict", b'{"rows": []}', 422, "bad_request", "at least one"),
    ("/predict", b'{"rows": [{}, {}], "ids": ["a"]}', 422, "bad_request", '"ids" has 1 values for 2 rows'),
    ("/predict", b'{"rows": [{}, {}], "ids": ["a", 3]}', 422, "bad_request", "ids[1] must be text"),
    ("/learn", b'{"row": {}}', 422, "bad_request", 'the field "label" is missing'),
    (
        "/learn",
        b'{"row": {}, "label": 2}',
        422,
        "bad_request",
        "label must be 1 (positive), 0 or -1 (negative), not the number 2",
    ),
    ("/learn", b'{"row": {}, "label": true}', 422, "bad_request", "not true"),
    (
        "/learn",
        b'{"row": {}, "label": 1, "importance": -1}',
        422,
        "bad_request",
        "importance must be a number from 0 to 1e12",
    ),
    ("/learn", b'{"row": {}, "label": 1, "importance": 1e999}', 422, "bad_request", "importance must be"),
    ("/learn", b'{"rows": [{}], "labels": [1, 0]}', 422, "bad_request", '"labels" has 2 values for 1 rows'),
    ("/learn", b'{"rows": [{}, {}], "labels": [1, 7]}', 422, "bad_request", "labels[1] must be 1"),
    ("/learn", b'{"rows": [{}], "labels": [1], "importances": [1, 1]}', 422, "bad_request", '"importances" has 2'),
    ("/label", b'{"id": "a"}', 422, "bad_request", 'the field "label" is missing'),
    (
        "/label",
        b'{"labels": [{"id": "a", "label": 1}, {"id": "b"}]}',
        422,
        "bad_request",
        'Labels[1]: the field "label"',
    ),
    ("/label", b'{"labels": [{"id": "a", "label": 1}, 3]}', 422, "bad_request", "Labels[1] must be an object"),
    ("/label", b'{"labels": []}', 422, "bad_request", "no labels"),
]


@pytest.mark.parametrize("path, body, status, code, words", BAD_BODIES)
def test_what_is_wrong_with_a_body_is_said(
    served: Served, path: str, body: bytes, status: int, code: str, words: str
) -> None:
    before = served.service.sequence, served.service.state.waiting
    answer = served.ask("POST", path, body)
    error = answer.error
    assert (answer.status, error["code"]) == (status, code), error
    assert words.lower() in error["message"].lower(), error["message"]
    assert (served.service.sequence, served.service.state.waiting) == before


def test_a_bad_line_is_named(served: Served) -> None:
    lines = b'{"row": {}, "label": 1}\n\n{"row": {}, "label": 5}\n'
    error = served.ask("POST", "/learn", lines, {"Content-Type": "application/x-ndjson"}).error
    assert error["message"].startswith("Line 3: ") and error["row"] == 1


def test_rows_that_the_service_refuses_are_numbered(served: Served) -> None:
    answer = served.ask("POST", "/predict", {"rows": [ROW, [[1, 2.0]]]})
    assert answer.status == 422
    assert answer.error["row"] == 1


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1"]
)
@pytest.mark.parametrize("path", ["/predict", "/learn", "/label"])
def test_other_media_types_are_refused(served: Served, path: str, kind: str) -> None:
    answer = served.ask("POST", path, b"{}", {"Content-Type": kind})
    assert answer.status == 415
    assert answer.error["code"] == "media_type"


def test_json_may_say_its_charset(served: Served) -> None:
    body = {"row": ROW}
    for kind in ("application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"'):
        assert served.ask("POST", "/predict", body, {"Content-Type": kind}).status == 200


def test_unknown_paths_and_methods(served: Served) -> None:
    assert served.ask("GET", "/nothing").error["code"] == "not_found"
    answer = served.ask("GET", "/predict")
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert answer.error["code"] == "method"
    assert set(served.ask("PUT", "/shadow").headers["allow"].split(", ")) == {"GET", "HEAD", "POST", "DELETE"}
    assert served.ask("HEAD", "/model").status == 200
    assert served.ask("HEAD", "/model").body == b""


def test_the_model_and_its_file(served: Served) -> None:
    model = served.ask("GET", "/model").json
    assert model["learner"] == "dual-auc" and model["shadow"] is None
    assert served.ask("POST", "/snapshot").json == {"sequence": served.service.sequence}
    file = served.ask("GET", "/model/file")
    assert file.headers["content-type"] == "application/octet-stream"
    assert Model.from_bytes(file.body).score_one(ROW) == served.service.answering.score_one(ROW)


def test_a_shadow_comes_and_goes() -> None:
    with serving() as served:
        assert served.ask("GET", "/shadow").status == 404
        file = served.ask("GET", "/model/file").body
        kind = {"Content-Type": "application/octet-stream"}
        assert served.ask("POST", "/shadow?promote=never", file, kind).status == 422
        assert served.ask("POST", "/shadow?positives=0", file, kind).status == 422
        assert served.ask("POST", "/shadow?margin=nan", file, kind).status == 422
        assert served.ask("POST", "/shadow?what=1", file, kind).status == 422
        assert served.ask("POST", "/shadow", file).status == 415
        assert served.ask("POST", "/shadow", b"", kind).status == 422
        assert served.ask("POST", "/shadow", b"no model", kind).status == 422
        assert served.ask("POST", "/shadow?promote=auto&positives=7&margin=0.01", file, kind).status == 201
        assert served.ask("GET", "/shadow").status == 200
        assert served.ask("POST", "/shadow/promote").error["code"] == "gate_closed"
        assert served.ask("DELETE", "/shadow").status == 204
        assert served.ask("DELETE", "/shadow").status == 404


def test_pages_of_other_sites_cannot_change_anything(served: Served) -> None:
    for method, path in (("POST", "/snapshot"), ("DELETE", "/shadow"), ("POST", "/shadow/promote")):
        answer = served.ask(method, path, headers={"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"})
        assert answer.status == 403


def test_health_and_readiness(served: Served) -> None:
    assert served.ask("GET", "/healthz").json["status"] == "ok"
    assert served.ask("GET", "/readyz").json["status"] == "ready"
    served.service.ready = False
    try:
        answer = served.ask("GET", "/readyz")
        assert (answer.status, answer.json["status"], answer.headers["retry-after"]) == (503, "starting", "1")
        assert served.ask("GET", "/healthz").status == 200
    finally:
        served.service.ready = True


def test_a_request_id_is_repeated_if_it_is_sane(served: Served) -> None:
    for path, body in (("/predict", {"row": ROW}), ("/predict", {}), ("/nothing", {})):
        answer = served.ask("POST", path, body, {"X-Request-Id": "abc-1"})
        assert answer.headers["x-request-id"] == "abc-1"
        answer = served.ask("POST", path, body, {"X-Request-Id": "a b\tc"})
        assert answer.headers.get("x-request-id") != "a b\tc"
    assert "x-request-id" not in served.ask("POST", "/predict", {"row": ROW}).headers


def test_a_failure_of_ours_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Service):
        def answer_one(self, body: object) -> bytes:
            raise KeyError("/secret/path")

        def model(self) -> object:  # type: ignore[override]
            raise RuntimeError("/secret/path")

    with serving(Broken) as served:
        for method, path, body in (("POST", "/predict", {"row": ROW}), ("GET", "/model", None)):
            answer = served.ask(method, path, body)
            assert (answer.status, answer.error["code"]) == (500, "internal")
            assert b"secret" not in answer.body
            assert answer.headers["x-request-id"] in answer.error["message"]
            logged = [record for record in caplog.records if answer.headers["x-request-id"] in record.getMessage()]
            assert logged and "/secret/path" in str(logged[0].exc_info[1])  # type: ignore[index]


def test_no_header_names_the_machine(served: Served) -> None:
    for path in ("/model", "/nothing", "/docs", "/"):
        headers = served.ask("GET", path).headers
        assert "server" not in headers
        assert "ython" not in str(headers) and "vicorn" not in str(headers)


def test_too_many_rows_are_refused() -> None:
    with serving(options=Options(limits=Limits(rows=3))) as served:
        assert served.ask("POST", "/predict", {"rows": [ROW] * 3}).status == 200
        for path, body in (
            ("/predict", {"rows": [ROW] * 4}),
            ("/learn", {"rows": [ROW] * 4, "labels": [1] * 4}),
            ("/label", {"labels": [{"id": "a", "label": 1}] * 4}),
        ):
            answer = served.ask("POST", path, body)
            assert (answer.status, answer.error["code"]) == (413, "too_large")
        lines = b"{}\n" * 4
        assert served.ask("POST", "/predict", lines, {"Content-Type": "application/x-ndjson"}).status == 413


# -- the token


def test_without_the_token_nothing_is_told() -> None:
    with serving(token=b"secret") as served:
        good = {"Authorization": "Bearer secret"}
        for method, path in list(served.runner.app.counts.routes):
            free = path in ("/healthz", "/readyz", "/docs", "/openapi.json", "/")
            for bad in (
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": "Basic secret"},
                {"Authorization": "Bearer"},
            ):
                if path == "/events" or (free and bad):
                    continue
                answer = served.ask(method, path, headers=bad)
                assert (answer.status == 401) != free, (path, answer)
                if not free:
                    assert answer.headers["www-authenticate"].startswith("Bearer")
                    assert answer.error["code"] == "unauthorized"
        assert served.ask("GET", "/events").status == 401
        assert served.ask("POST", "/predict", {"row": ROW}, good).status == 200
        assert served.ask("GET", "/model", None, {"Authorization": "bearer secret"}).status == 200
        assert served.ask("GET", "/model", None, good).status == 200


# -- numbers


def numbers(text: str) -> dict[str, float]:
    return {
        line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")
    }


def test_metrics_count_what_was_answered() -> None:
    with serving() as served:
        for _ in range(3):
            served.ask("POST", "/predict", {"row": ROW})
        served.ask("POST", "/predict", {"rows": [ROW, ROW]})
        served.ask("POST", "/predict", b"{")
        served.ask("POST", "/learn", {"row": ROW, "label": 1})
        served.ask("GET", "/nothing")
        answer = served.ask("GET", "/metrics")
        assert answer.headers["content-type"].startswith("text/plain")
        found = numbers(answer.body.decode())
        assert found['rarestream_requests_total{method="POST",path="/predict",status="200"}'] == 4
        assert found['rarestream_requests_total{method="POST",path="/predict",status="400"}'] == 1
        assert found['rarestream_requests_total{method="",path="",status="404"}'] == 1
        assert found['rarestream_request_seconds_count{method="POST",path="/predict"}'] == 5
        assert found['rarestream_request_seconds_bucket{le="+Inf",method="POST",path="/predict"}'] == 5
        assert found["rarestream_rows_predicted_total"] == 5
        assert found["rarestream_rows_learned_total"] == 1
        assert found["rarestream_sequence"] == 1
        assert found["rarestream_ready"] == 1
        assert found["rarestream_memory_bytes"] > 0


def test_every_number_of_the_service_has_a_metric() -> None:
    class Full(Service):
        def statistics(self) -> dict[str, object]:
            auc = {"value": 0.8, "low": 0.7, "high": 0.9}
            return {
                "version": 2, "sequence": 7, "rows": 3, "positives": 1, "nonzeros": 5, "n_features": 9, "state_bytes": 10,
                "auc": auc, "window_auc": {"value": None, "low": 0.0, "high": 1.0}, "drift": {"alarm": False, "alarms": [], "count": 2},
                "labels": {"waiting": 4, "joined": 3}, "queue": {"rows": 0, "limit": 10}, "disk": {"log_bytes": 99},
            }  # fmt: skip

    with serving(Full) as served:
        found = numbers(served.ask("GET", "/metrics").body.decode())
        assert found['rarestream_auc{bound="low"}'] == 0.7
        assert 'rarestream_window_auc{bound="value"}' not in found
        assert found["rarestream_drift_alarms_total"] == 2
        assert found["rarestream_drift_alarm"] == 0
        assert found["rarestream_pending_labels"] == 4
        assert found["rarestream_log_bytes"] == 99
        assert found["rarestream_model_version"] == 2


def test_events_are_a_stream_that_ends_when_the_service_stops() -> None:
    with serving() as served:
        connection = served.connect()
        connection.sendall(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
        said = b""
        while said.count(b"data: ") < 2:
            said += connection.recv(65536)
        assert b"content-type: text/event-stream" in said
        line = next(line for line in said.split(b"\n") if line.startswith(b"data: "))
        assert json.loads(line[6:])["rows"] == served.service.answering.rows
        assert served.ask("GET", "/statistics").json["rows"] == served.service.answering.rows
    with connection:
        while connection.recv(65536):
            pass


def test_only_so_many_live_pages() -> None:
    with serving(live_pages=1) as served, served.connect() as connection:
        connection.sendall(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200" in connection.recv(100)
        answer = served.ask("GET", "/events")
        assert (answer.status, answer.error["code"]) == (503, "busy")


# -- pages


def test_the_pages_need_nothing_from_elsewhere(served: Served) -> None:
    page = served.ask("GET", "/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    text = page.body.decode()
    assert "src=" not in text and "@import" not in text and "url(" not in text
    for path in served.ask("GET", "/openapi.json").json["paths"]:
        assert f"<code>{path}</code>" in text
    page = served.ask("GET", "/")
    assert page.status == 200 and b"<!doctype html>" in page.body[:100].lower()


def test_a_quick_request_is_answered_between_large_ones_that_came_before_it(tmp_path: Path) -> None:
    begun: list[str] = []

    async def ask(app: Application, path: str, content: Any) -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": json.dumps(content).encode()}

        async def send(message: Any) -> None:
            assert message.get("status", 200) == 200

        scope = {"type": "http", "method": "POST", "path": path, "query_string": b""}
        await app(scope | {"headers": [(b"content-type", b"application/json")]}, receive, send)

    def noted(app: Application, path: str) -> None:
        endpoint = app.endpoints["POST", path]
        answer = endpoint.takes_body
        assert answer is not None

        def note(*request: Any) -> Any:
            begun.append(path)
            return answer(*request)

        endpoint.takes_body = note

    async def work() -> None:
        service = Service(tmp_path, trained_model())
        await service.start()
        app = Application(service, Settings())
        noted(app, "/learn")
        noted(app, "/predict")
        large = {"rows": [ROW] * 2000, "labels": [0, 1] * 1000}
        await asyncio.gather(*(ask(app, "/learn", large) for _ in range(5)), ask(app, "/predict", {"row": ROW}))
        await service.stop()

    asyncio.run(work())
    assert begun.count("/learn") == 5
    assert begun.index("/predict") <= 1
