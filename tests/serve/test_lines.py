"""The line protocol: the same scores as over HTTP and as of `Model`, in order, whatever comes in between."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rarestream import Model
from rarestream.serve.lines import LONGEST
from rarestream.serve.replica import Replica
from rarestream.serve.service import Service
from tests.children import run
from tests.serve.programs import RARESTREAM, named_model, serving

VW_LINES = [f"{1 if n % 3 else -1} {1 + n % 2} |site s{n % 7} |x price:{n / 10} new" for n in range(60)]
SVM_LINES = [f"{1 if n % 3 else -1} {1 + n % 5}:1 {10 + n % 7}:{n / 4}" for n in range(60)]


@pytest.fixture(scope="module")
def vw_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("vw"), "rows.vw", VW_LINES)


@pytest.fixture(scope="module")
def svm_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("svm"), "rows.svm", SVM_LINES)


def trained(folder: Path, name: str, lines: list[str]) -> Path:
    (folder / name).write_text("\n".join([*lines, ""]))
    path = folder / "model.rare"
    run([*RARESTREAM, "train", folder / name, "--learner", "ftrl-auc", "-o", path], check=True)
    return path


Talk = Callable[..., Awaitable[list[str]]]


@asynccontextmanager
async def listening(model: Path | None, folder: Path, token: bytes | None = None) -> AsyncIterator[tuple[Any, Talk]]:
    """A service on a free port, and how to talk to it: bytes in, lines out."""
    service: Any = Replica(folder) if model is None else Service(folder, Model.load(model))
    service.lines = ("127.0.0.1", 0, token)
    await service.start()

    async def talk(*pieces: bytes) -> list[str]:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.lines_port)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)  # so that pieces arrive as such
        writer.write_eof()
        said = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        return said.decode().splitlines()

    try:
        yield service, talk
    finally:
        await service.stop()


def text(lines: list[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


def unlabelled(lines: list[str]) -> list[str]:
    return [line[line.index("|") :] for line in lines]


def scores_of(model: Path, lines: list[str], folder: Path, suffix: str = "vw") -> list[str]:
    """The progressive scores of `rarestream`: each row is scored, then learned if it has a label."""
    from rarestream import read

    found = []
    loaded = Model.load(model)
    for number, line in enumerate(lines):
        path = folder / f"line{number}.{suffix}"
        path.write_text(line + "\n")
        for block in read(path, features=loaded.features):
            found += loaded.learn(block).tolist()
    return [f"{score:.9g}" for score in found]


def test_labelled_lines_are_learned_and_answered_with_the_score_from_before(vw_model: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with listening(vw_model, tmp_path / "state") as (service, talk):
            before = service.answering.rows
            said = await talk(text(VW_LINES))
            assert said == scores_of(vw_model, VW_LINES, tmp_path)
            assert service.answering.rows == before + 60

    asyncio.run(main())


def test_lines_without_labels_are_only_scored(vw_model: Path, tmp_path: Path) -> None:
    with serving(vw_model, "--dir", tmp_path / "state", "--lines", free_port()) as program:
        words = program.child.args
        port = int(words[words.index("--lines") + 1])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(text(unlabelled(VW_LINES[:5])))
            connection.shutdown(socket.SHUT_WR)
            said = b"".join(iter(lambda: connection.recv(65536), b"")).decode().split()
        assert program.ask("GET", "/model").json["rows"] == 60
        assert len(said) == 5 and all(float(score) == float(score) for score in said)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_json_lines_have_the_scores_of_http(tmp_path: Path) -> None:
    model = named_model(tmp_path)
    row = {"site": "s1.com", "price": 1.5, "new": True}

    async def main() -> None:
        async with listening(model, tmp_path / "state") as (service, talk):
            said = await talk(text([json.dumps(row)] * 3))
            expected = Model.load(model).score_one(row)
            assert said == [f"{expected:.9g}"] * 3
            assert service.sequence == 0

    asyncio.run(main())


def test_svmlight_lines_for_a_model_of_column_numbers(svm_model: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with listening(svm_model, tmp_path / "state") as (service, talk):
            assert await talk(text(SVM_LINES)) == scores_of(svm_model, SVM_LINES, tmp_path, "svm")
            said = await talk(b"[[0, 1.0], [9, 0.5]]\n")
            assert float(said[0]) == pytest.approx(service.answering.score_one([0, 9], [1.0, 0.5]))

    asyncio.run(main())


def test_many_pipelined_lines_of_all_kinds_are_answered_in_order(vw_model: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    for number in range(3000):
        lines.append(unlabelled(VW_LINES)[number % 60] if number % 4 else VW_LINES[number % 60])
        if number % 97 == 0:
            lines.append("1 |a b:nonsense")
        if number % 101 == 0:
            lines.append("")

    async def main() -> None:
        async with listening(vw_model, tmp_path / "state") as (service, talk):
            said = await talk(text(lines))
            assert len(said) == len(lines)
            for line, answer in zip(lines, said, strict=True):
                assert answer.startswith("error: ") == (line == "" or "nonsense" in line), (line, answer)
            assert service.answering.rows == 60 + 750

        again = Service(tmp_path / "state")  # one line at a time has the same scores
        await again.start()
        assert again.answering.rows == 60 + 750
        await again.stop()

    asyncio.run(main())


@pytest.mark.parametrize(
    "sent",
    [
        [b"|site s1\n|site s2"],
        [b"|site s1\r\n|site s2\r\n"],
        [b"|si", b"te s1\n|site", b" s2", b"\n"],
        [b"|site s1\n", b"", b"|site s2\n"],
    ],
    ids=["no final newline", "carriage returns", "half lines", "two pieces"],
)
def test_ends_of_lines(vw_model: Path, tmp_path: Path, sent: list[bytes]) -> None:
    async def main() -> None:
        async with listening(vw_model, tmp_path / "state") as (_, talk):
            assert await talk(*sent) == await talk(b"|site s1\n|site s2\n")

    asyncio.run(main())


def test_a_line_that_is_too_long_ends_the_connection_after_the_answers_before_it(
    vw_model: Path, tmp_path: Path
) -> None:
    async def main() -> None:
        async with listening(vw_model, tmp_path / "state") as (service, talk):
            reader, writer = await asyncio.open_connection("127.0.0.1", service.lines_port)
            writer.write(b"|site s1\n")
            first = await asyncio.wait_for(reader.readline(), 60)
            assert float(first) == float(first)
            sending = asyncio.ensure_future(_send(writer, b"|a " + b"b " * LONGEST))
            assert b"at most" in await asyncio.wait_for(reader.read(), 60)
            await sending
            assert await talk(b"|site s1\n") == [first.decode().strip()]

    asyncio.run(main())


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    try:
        writer.write(data)
        await writer.drain()
    except ConnectionError:
        pass


def test_a_caller_that_does_not_read_is_not_read_from(vw_model: Path, tmp_path: Path) -> None:
    """Memory stays bounded: far fewer lines are taken in than are sent."""

    async def main() -> None:
        async with listening(vw_model, tmp_path / "state") as (service, talk):
            _, writer = await asyncio.open_connection("127.0.0.1", service.lines_port, limit=1024)
            data = text(unlabelled(VW_LINES)[:1] * 1000)

            async def flood() -> None:
                while True:
                    writer.write(data)
                    await writer.drain()

            flooding = asyncio.ensure_future(flood())
            while True:  # until nothing moves any more: buffers are full at both ends
                size = writer.transport.get_write_buffer_size()
                await asyncio.sleep(0.3)
                if size and writer.transport.get_write_buffer_size() == size:
                    break
            flooding.cancel()
            assert len(await talk(b"|site s1\n")) == 1  # others are answered
            writer.transport.abort()

    asyncio.run(main())


def test_the_token_is_the_first_line(vw_model: Path, tmp_path: Path) -> None:
    token = b"a-secret-of-some-length"

    async def main() -> None:
        async with listening(vw_model, tmp_path / "state", token) as (service, talk):
            assert len(await talk(b"token " + token + b"\n|site s1\n")) == 1
            for wrong in (b"1 |site s1\n", b"token wrong\n1 |site s1\n", b"token \xff\n1 |site s1\n", b"\n"):
                said = await talk(wrong)
                assert said == ['error: the first line must be "token " and the token.']
            assert service.answering.rows == 60  # nothing was learned

    asyncio.run(main())


def test_a_server_that_stops_answers_what_it_accepted_and_closes(vw_model: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with listening(vw_model, tmp_path / "state") as (service, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", service.lines_port)
            writer.write(text(VW_LINES[:1]))
            await asyncio.wait_for(reader.readline(), 60)
            writer.write(text(VW_LINES[:20]))
            await service.stop()
            said = (await asyncio.wait_for(reader.read(), 60)).decode().splitlines()
            learned = [line for line in said if not line.startswith("error: ")]
            assert service.answering.rows == 60 + 1 + len(learned)  # an answer with a score was learned, no other
            assert all("stopping" in line or "starting" in line for line in said if line.startswith("error: "))

    asyncio.run(main())


def test_a_read_only_service_scores_lines_and_refuses_labelled_ones(vw_model: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with listening(vw_model, tmp_path / "state") as (_, talk):
            expected = await talk(b"|site s1\n")
        async with listening(None, tmp_path / "state") as (_, talk):
            said = await talk(b"|site s1\n1 |site s1\n|site s1\n")
            assert [said[0], said[2]] == expected * 2
            assert said[1].startswith("error: This service is read-only.")

    asyncio.run(main())


def test_standard_input_is_answered_on_standard_output(vw_model: Path, tmp_path: Path) -> None:
    rows = text([*VW_LINES[:30], "nonsense |a b:x", *unlabelled(VW_LINES[:3])])[:-1]
    command = [*RARESTREAM, "serve", vw_model, "--dir", tmp_path / "state", "--stdin"]
    done = run(command, input=rows, text=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode().splitlines()
    assert said[:30] == scores_of(vw_model, VW_LINES[:30], tmp_path)
    assert said[30].startswith("error: ") and len(said) == 34
    again = run([*RARESTREAM, "serve", "--dir", tmp_path / "state", "--stdin"], input=rows[-40:], text=False)
    assert again.stdout.decode().splitlines()[-1] == said[-1]  # it continues where it stopped
