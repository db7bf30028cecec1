"""Models of named features: every format scores 100,000 rows of a table as the model does, hashing of names included."""

from __future__ import annotations

import csv
import io
import json
import math
import random
import struct
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarestream import Block, ExportError, Hashed, Model, read
from rarestream.export import export
from rarestream.features import ColumnPlan, Kind
from tests import children
from tests.export import scorers
from tests.export.conftest import Named, Table, named
from tests.export.test_columns import agree

C_TABLE = """
#include "model.h"
/* Rows of cells, separated by tabs, from standard input; scores to standard output. */
static const char* const columns[] = {COLUMNS};
int main(void) {
    static char line[1 << 16];
    model_row row = {0};
    while (fgets(line, sizeof line, stdin)) {
        char* at = line;
        size_t c;
        double score;
        line[strcspn(line, "\\n")] = 0;
        for (c = 0; c < sizeof columns / sizeof *columns; ++c) {
            char* const end = strchr(at, '\\t');
            if (end) *end = 0;
            model_row_text(&row, columns[c], at);
            if (end) at = end + 1;
        }
        score = model_row_score(&row);
        fwrite(&score, sizeof score, 1, stdout);
    }
    model_row_free(&row);
    return 0;
}
"""


def c_table_scores(folder: Path, table: Table, language: str = "c") -> Any:
    names = ", ".join(json.dumps(column) for column in table.columns)
    cells = zip(*table.columns.values(), strict=True)
    lines = "".join("\t".join("" if cell is None else str(cell) for cell in row) + "\n" for row in cells)
    program = scorers.compiled(folder, C_TABLE.replace("COLUMNS", names), language)
    return np.frombuffer(children.run([program], input=lines.encode(), check=True, text=False).stdout)


def feature_names(block: Block) -> list[str]:
    """The name of each entry of a block, by the names that its own space has met."""
    assert block.space is not None and block.space.names is not None and block.space.names.collisions == 0
    slots, places = np.unique(block.indices, return_inverse=True)
    names = block.space.names.names(slots)
    assert None not in names
    return [names[place] for place in places.tolist()]


def rows_of(model: Model, table: Table, rows: int) -> Block:
    """The first rows of a table, in a space that has met their names only."""
    space = model.features.fresh()
    return Block.of_dicts(table.dicts()[:rows], features=space)


# -- a table


def test_javascript(of_text: Named, table: Table, tmp_path: Path):
    export(of_text.model, tmp_path / "model.mjs")
    agree(scorers.js_named_scores(tmp_path, table.dicts()), of_text.scores)


@scorers.needs_compiler
def test_c(of_text: Named, table: Table, tmp_path: Path):
    export(of_text.model, tmp_path / "model.h")
    agree(c_table_scores(tmp_path, table), of_text.scores)


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_sql_of_the_rows_as_they_are(of_table: Named, table: Table, tmp_path: Path, engine: str):
    export(of_table.model, tmp_path / "model.sql")
    names = [
        column.name for column in of_table.model.features.plan.columns if column.kinds and column.name != "clicked"
    ]
    columns = {"row_id": np.arange(len(of_table.scores)), **{name: table.columns[name] for name in names}}
    found = scorers.sql_rows(tmp_path / "model.sql", "model_table", columns, "model_table_scores", engine)
    assert [row for row, _, _ in found] == list(range(len(of_table.scores)))
    agree([score for _, score, _ in found], of_table.scores)


def test_onnx_with_names(of_table: Named, table: Table, tmp_path: Path):
    export(of_table.model, tmp_path / "model.onnx")
    block = rows_of(of_table.model, table, len(of_table.scores))
    agree(scorers.onnx_run(tmp_path / "model.onnx", block, feature_names(block))[0], of_table.scores)


def test_onnx_with_slots(of_text: Named, table: Table, tmp_path: Path):
    export(of_text.model, tmp_path / "model.onnx", inputs="indices")
    block = rows_of(of_text.model, table, 5000)
    agree(scorers.onnx_run(tmp_path / "model.onnx", block)[0], of_text.scores[:5000])


def test_csv_has_namespaces_and_names(of_text: Named, table: Table, tmp_path: Path):
    export(of_text.model, tmp_path / "model.csv")
    text = (tmp_path / "model.csv").read_text("utf-8")
    assert text.startswith("index,namespace,name,weight\n")
    slot = of_text.model.features.slot("site", "été^x")
    assert f"\n{slot},site,été^x," in text
    block = rows_of(of_text.model, table, 5000)
    agree(scorers.csv_scores(tmp_path / "model.csv", block, "unit"), of_text.scores[:5000])


@pytest.mark.parametrize("scale", ["max", "none"])
@pytest.mark.parametrize("numbers", ["soft", "raw"])
def test_other_scales_and_numbers(table: Table, tmp_path: Path, scale: str, numbers: str):
    """Raw numbers, n-grams of characters, and rows scaled in other ways, in all formats."""
    few = Table(
        table.path.with_name(f"few-{scale}-{numbers}.csv"),
        {name: cells[:3000] for name, cells in table.columns.items()},
    )
    few.path.write_text("".join(table.path.open(encoding="utf-8", newline="").readlines()[:3001]), "utf-8")
    model, scores = named(few, scale, numbers=numbers, text=["title"], ngrams="chars:2-4")
    export(model, tmp_path / "model.mjs")
    agree(scorers.js_named_scores(tmp_path, few.dicts()), scores)
    if scorers.CC is not None:
        export(model, tmp_path / "model.h")
        agree(c_table_scores(tmp_path, few), scores)
        agree(c_table_scores(tmp_path, few, "cpp"), scores)
    block = rows_of(model, few, 3000)
    export(model, tmp_path / "model.onnx")
    agree(scorers.onnx_run(tmp_path / "model.onnx", block, feature_names(block))[0], scores)
    export(model, tmp_path / "model.sql")
    assert "SQL does not split the text of column 'title' into words" in (tmp_path / "model.sql").read_text("utf-8")
    for engine in ("sqlite", "duckdb"):
        agree(scorers.sql_scores(tmp_path / "model.sql", block, feature_names(block), engine), scores)
    model, scores = named(few, scale, numbers=numbers, ignore=["title"])
    export(model, tmp_path / "model.sql")
    names = [column.name for column in model.features.plan.columns if column.kinds and column.name != "clicked"]
    columns = {"row_id": np.arange(len(scores)), **{name: few.columns[name] for name in names}}
    for engine in ("sqlite", "duckdb"):
        found = scorers.sql_rows(tmp_path / "model.sql", "model_table", columns, "model_table_scores", engine)
        agree([score for _, score, _ in found], scores)


def test_a_view_may_take_the_place_of_the_table(of_table: Named, table: Table, tmp_path: Path):
    """Rows that are in a table of another name and shape, by a view that is made before the script runs."""
    import sqlite3

    export(of_table.model, tmp_path / "model.sql", name="m")
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE log (n INTEGER, site TEXT)")
    connection.execute("INSERT INTO log VALUES (1, 'a.com'), (2, NULL)")
    view = 'SELECT n AS row_id, site, NULL AS price, NULL AS age, \'web\' AS "it\'s", NULL AS "when" FROM log'
    connection.execute(f"CREATE VIEW m_table AS {view}")
    for _ in range(2):  # a second time it replaces what it has made
        connection.executescript((tmp_path / "model.sql").read_text("utf-8"))
    expected = [of_table.model.score_one({"site": site, "it's": "web"}) for site in ("a.com", None)]
    found = [score for _, score, _ in connection.execute("SELECT * FROM m_table_scores ORDER BY row_id")]
    assert found == pytest.approx(expected, rel=1e-6)


def test_columns_may_have_any_name(tmp_path: Path):
    """Those of the views' own columns, words of SQL and C, quotes, and none that a language would take for something else."""
    names = [
        "col",
        "name",
        "x",
        "value",
        "part",
        "day",
        "k",
        "select",
        'a"b',
        "it's",
        "a b",
        "NAME_x",
        "@bits@",
        "__proto__",
    ]
    choose = random.Random(1)
    rows = [{name: choose.choice(["u", "v", ""]) for name in names} for _ in range(300)]
    for row in rows:
        row |= {"u": choose.random(), "category": choose.randint(0, 5), "when": f"2026-01-0{choose.randint(1, 9)}"}
        row["label"] = int(row["x"] == "u" or row["category"] == 3)
    (tmp_path / "rows.csv").write_text(csv_text(rows), "utf-8")
    model = Model("dual-auc")
    for block in read(tmp_path / "rows.csv", label="label", crosses=['col*a"b', "u*category"]):
        model.learn(block)
    scores = model.score(block)
    export(model, tmp_path / "model.sql")
    export(model, tmp_path / "model.mjs")
    agree(scorers.js_named_scores(tmp_path, rows), scores)
    columns = {"row_id": np.arange(300), **{name: [row[name] for row in rows] for name in rows[0] if name != "label"}}
    for engine in ("sqlite", "duckdb"):
        found = scorers.sql_rows(tmp_path / "model.sql", "model_table", columns, "model_table_scores", engine)
        agree([score for _, score, _ in found], scores)
    if scorers.CC is not None:
        export(model, tmp_path / "model.h")
        few = Table(tmp_path, {name: [row[name] for row in rows] for name in rows[0]})
        agree(c_table_scores(tmp_path, few), scores)


def csv_text(rows: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


# -- dicts


def values(choose: random.Random) -> Any:
    texts = ["a", "日本", "été", "007", "3", "3.0", "x y", "", "A^b", "\U0001f600", "\x1f", "tab\t"]
    return choose.choice(
        [
            choose.choice(texts),
            choose.randint(-5, 40),
            choose.choice([2**53 - 1, -(2**53) + 1, 2.0**60, 1e16, 1e15 + 0.5, 123456.75]),
            round(choose.lognormvariate(0, 3), 3),
            choose.choice([-1e-7, 1e-5, 1.5e-5, 5e-324, 1e300, -0.0, 0.1 + 0.2, 0.5, 8.0]),
            choose.choice([True, False, None]),
            [choose.choice(["t1", "t2", 3, 2.5, 1e-5, 1e20, True, None, ""]) for _ in range(3)],
            {"k": choose.choice([1.5, "x", True, ["p", "q", 4], {"z": 2, "y": "w"}, 0, None])},
        ]
    )


@pytest.fixture(scope="session")
def dicts() -> list[dict[str, Any]]:
    choose = random.Random(3)
    return [{key: values(choose) for key in "abcdef" if choose.random() < 0.7} for _ in range(20_000)]


@pytest.mark.parametrize("scale", ["unit", "max"])
def test_javascript_takes_any_dict(dicts: list[dict[str, Any]], tmp_path: Path, scale: str):
    labels = [1 if "a" in row and row["a"] in ("a", 3, True) else -1 for row in dicts]
    model = Model("dual-auc", scale=scale, features=Hashed(bits=14))  # with slots that several names share
    model.learn(Block.of_dicts(dicts[:5000], labels[:5000], features=Hashed(bits=14)))
    export(model, tmp_path / "model.mjs")
    expected = model.score(Block.of_dicts(dicts, features=model.features))
    agree(scorers.js_named_scores(tmp_path, dicts), expected)


C_DICTS = """
#include "model.h"
int main(void) {
    model_row row = {0};
    const char* list[8];
    (void)list;
ROWS
    model_row_free(&row);
    return 0;
}
"""


@scorers.needs_compiler
def test_c_takes_typed_values(dicts: list[dict[str, Any]], tmp_path: Path):
    rows = [
        {key: value for key, value in row.items() if not isinstance(value, dict)}
        for row in dicts[:300]
        if not any(isinstance(value, list) and any(not isinstance(one, str) for one in value) for value in row.values())
    ]
    model = Model("dual-auc")
    model.learn(Block.of_dicts(dicts[:5000], [1 if "a" in row else -1 for row in dicts[:5000]]))
    export(model, tmp_path / "model.h")
    lines = []
    for row in rows:
        for key, value in row.items():
            if isinstance(value, bool):
                lines.append(f'model_row_bool(&row, "{key}", {int(value)});')
            elif isinstance(value, int | float):
                lines.append(f'model_row_number(&row, "{key}", {float(value)!r});')
            elif isinstance(value, str):
                lines.append(f'model_row_text(&row, "{key}", {c_text(value)});')
            elif isinstance(value, list):
                lines += [f"list[{i}] = {c_text(one)};" for i, one in enumerate(value)]
                lines.append(f'model_row_list(&row, "{key}", list, {len(value)});')
        lines.append('printf("%.17g\\n", model_row_score(&row));')
    program = scorers.compiled(tmp_path, C_DICTS.replace("ROWS", "\n".join(lines)))
    found = [float(line) for line in children.run([program], check=True).stdout.split()]
    agree(found, model.score(Block.of_dicts(rows, features=model.features)))


def c_text(text: str) -> str:
    return '"' + "".join(f"\\{byte:03o}" for byte in text.encode()) + '"'


def test_numbers_have_the_same_slots_in_every_language(tmp_path: Path):
    """Any float64, as a number and as a category: its buckets, and its shortest digits."""
    choose = random.Random(9)
    numbers = [struct.unpack("d", struct.pack("Q", choose.getrandbits(64)))[0] for _ in range(2000)]
    numbers += [choose.choice([1, -1]) * 10 ** choose.uniform(-8, 20) for _ in range(2000)]
    numbers += [2.0**power for power in range(-1074, 1024)] + [float(f"{choose.random():.3g}") for _ in range(500)]
    numbers = [number for number in numbers if math.isfinite(number)]
    space = Hashed(bits=22, names=False)
    model = Model("dual-auc", features=space)
    model.learn(Block.of_dicts([{"x": 1, "c": "a"}], [1], features=space))
    model.features.plan = replace(model.features.plan, columns=(ColumnPlan("c", Kind.CATEGORY),))
    expected = Block.of_dicts([{"x": number, "c": number} for number in numbers], features=model.features)
    slots = [expected.indices[i:j].tolist() for i, j in zip(expected.indptr, expected.indptr[1:], strict=False)]
    export(model, tmp_path / "model.mjs")
    code = """
    import { readFileSync } from "node:fs";
    import { features } from "./model.mjs";
    const data = readFileSync("data");
    const numbers = new Float64Array(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength));
    console.log(JSON.stringify(Array.from(numbers, (x) => features({ x, c: x }).indices)));
    """
    data = np.array(numbers).tobytes()
    assert scorers.javascript(tmp_path, code, data) == slots
    if scorers.CC is None:
        return
    export(model, tmp_path / "model.h")
    code = """
    #include "model.h"
    int main(void) {
        double x;
        model_row row = {0};
        while (fread(&x, sizeof x, 1, stdin) == 1) {
            size_t i;
            model_row_number(&row, "x", x);
            model_row_number(&row, "c", x);
            qsort(row.features, row.size, sizeof *row.features, model_compare);
            for (i = 0; i < row.size; ++i) printf("%d ", row.features[i].slot);
            printf("\\n");
            model_row_clear(&row);
        }
        model_row_free(&row);
        return 0;
    }
    """
    found = children.run([scorers.compiled(tmp_path, code)], input=data, check=True, text=False).stdout.decode()
    assert [[int(slot) for slot in line.split()] for line in found.splitlines()] == slots


def test_dates_have_the_same_slots_in_every_language(tmp_path: Path):
    choose = random.Random(4)

    def text() -> str:
        day = f"{choose.randint(0, 9999):04}-{choose.randint(1, 12):02}-{choose.randint(1, 31):02}"
        time = f"{choose.choice('T ')}{choose.randint(0, 23):02}:{choose.randint(0, 59):02}"
        seconds = choose.choice(["", f":{choose.randint(0, 60):02}", ":59.125"])
        offset = choose.choice(["", "Z", "+05:30", "-1130", "+14", "-23:59"])
        return day + choose.choice(["", time + seconds + offset])

    space = Hashed(bits=22)
    model = Model("dual-auc", features=space)
    model.learn(Block.of_dicts([{"d": 1}], [1], features=space))
    model.features.plan = replace(model.features.plan, columns=(ColumnPlan("d", Kind.DATE),))
    dates, expected = [], []
    for date in (text() for _ in range(4000)):
        try:
            block = Block.of_dicts([{"d": date}], features=model.features)
        except ValueError:
            continue  # 31 February
        dates.append(date)
        expected.append(block.indices.tolist())
    assert 3000 < len(dates) < 4000
    export(model, tmp_path / "model.mjs")
    code = f"""
    import {{ features, score }} from "./model.mjs";
    console.log(JSON.stringify({json.dumps(dates)}.map((d) => features({{ d }}).indices)));
    for (const d of ["2026-02-29", "2026-13-01", "yesterday"]) {{
      try {{ score({{ d }}); process.exit(1); }} catch (error) {{ if (!error.message.startsWith("d: has dates")) throw error; }}
    }}
    """
    assert scorers.javascript(tmp_path, code) == expected
    if scorers.CC is None:
        return
    export(model, tmp_path / "model.h")
    code = """
    #include "model.h"
    int main(void) {
        static char line[256];
        model_row row = {0};
        while (fgets(line, sizeof line, stdin)) {
            size_t i;
            line[strcspn(line, "\\n")] = 0;
            model_row_text(&row, "d", line);
            qsort(row.features, row.size, sizeof *row.features, model_compare);
            for (i = 0; i < row.size; ++i) printf("%d ", row.features[i].slot);
            printf("\\n");
            model_row_clear(&row);
        }
        model_row_text(&row, "d", "2026-02-29");
        if (!isnan(model_row_score(&row))) return 1;
        model_row_free(&row);
        return 0;
    }
    """
    found = children.run([scorers.compiled(tmp_path, code)], input="\n".join([*dates, ""]), check=True).stdout
    assert [[int(slot) for slot in line.split()] for line in found.splitlines()] == expected


@pytest.mark.parametrize("ngrams", ["words:1-3", "chars:2-4"])
def test_texts_have_the_same_slots_in_every_language(tmp_path: Path, ngrams: str):
    choose = random.Random(8)
    alphabet = "aAbZz09 ,-_'\t\x01\x1f\x7fé\u00a0日\u2028\U0001f600ÀßİK"
    texts = ["".join(choose.choice(alphabet) for _ in range(choose.randint(1, 30))) for _ in range(2000)]
    space = Hashed(bits=22)
    model = Model("dual-auc", features=space)
    model.learn(Block.of_dicts([{"t": 1}], [1], features=space))
    model.features.plan = replace(
        model.features.plan, columns=(ColumnPlan("t", Kind.TEXT),), ngrams=ngrams, counts=True
    )
    block = Block.of_dicts([{"t": text} for text in texts], features=model.features)
    pairs = list(zip(block.indices.tolist(), block.values.tolist(), strict=True))
    expected = [pairs[i:j] for i, j in zip(block.indptr, block.indptr[1:], strict=False)]
    export(model, tmp_path / "model.mjs")
    code = f"""
    import {{ features }} from "./model.mjs";
    console.log(JSON.stringify({json.dumps(texts)}.map((t) => features({{ t }}))));
    """
    found = scorers.javascript(tmp_path, code)
    assert [list(zip(row["indices"], row["values"], strict=True)) for row in found] == expected
    if scorers.CC is None:
        return
    export(model, tmp_path / "model.h")
    code = """
    #include "model.h"
    int main(void) {
        static char line[256];
        model_row row = {0};
        while (fgets(line, sizeof line, stdin)) {
            size_t i;
            line[strcspn(line, "\\n")] = 0;
            model_row_text(&row, "t", line);
            for (i = 0; i < row.size; ++i) printf("%d ", row.features[i].slot);
            printf("\\n");
            model_row_clear(&row);
        }
        model_row_free(&row);
        return 0;
    }
    """
    given = "\n".join([*texts, ""]).encode()
    printed = children.run([scorers.compiled(tmp_path, code)], input=given, check=True, text=False).stdout.decode()
    counted = [Counter(int(slot) for slot in line.split()) for line in printed.split("\n")[:-1]]
    assert counted == [dict(row) for row in expected]


def test_the_slots_of_the_documentation(of_text: Named, tmp_path: Path):
    vectors = [("", "a"), ("site", "example.com/path"), ("site*device", "a.com\x1fios"), ("été", "日本")]
    expected = [Hashed(bits=22).slot(*vector) for vector in vectors]
    assert expected == [2451890, 1439110, 3829270, 3562028]
    export(of_text.model, tmp_path / "model.mjs")
    code = f'import {{ slot }} from "./model.mjs"; console.log(JSON.stringify({json.dumps(vectors)}.map((v) => slot(...v))));'
    assert scorers.javascript(tmp_path, code) == expected
    if scorers.CC is not None:
        export(of_text.model, tmp_path / "model.h")
        calls = "".join(f'printf("%d\\n", model_slot({c_text(a)}, {c_text(b)}));' for a, b in vectors)
        program = scorers.compiled(tmp_path, f'#include "model.h"\nint main(void) {{ {calls} return 0; }}')
        assert [int(line) for line in children.run([program], check=True).stdout.split()] == expected


# -- names that are not known


def test_vw_text_by_names_and_without(tmp_path: Path):
    (tmp_path / "a.vw").write_text("1 |site a.com |price p:2.5 :3\n-1 |site b.com:2 |price p:1 :7\n" * 30)
    (tmp_path / "named.vw").write_text("|site a.com |price p:2.5\n|site b.com:2 |price p:1\n")
    model = Model("dual-auc")
    for block in read(tmp_path / "a.vw"):
        model.learn(block)
    expected = model.score(block)[:2]
    export(model, tmp_path / "model.mjs")
    rows = '[[["site", "a.com", 1], ["price", "p", 2.5]], [["site", "b.com", 2], ["price", "p", 1]]]'
    code = f"""
    import {{ scoreFeatures }} from "./model.mjs";
    console.log(JSON.stringify({rows}.map(scoreFeatures)));
    """
    named_only = next(iter(read(tmp_path / "named.vw", features=model.features, labels="optional")))
    agree(scorers.javascript(tmp_path, code), model.score(named_only))
    export(model, tmp_path / "model.onnx")
    names = [["site^a.com", "price^p", "price^:0"], ["site^b.com", "price^p", "price^:0"]]
    session = pytest.importorskip("onnxruntime").InferenceSession(str(tmp_path / "model.onnx"))
    values = np.array([[1, 2.5, 3], [2, 1, 7]], np.float32)
    agree(session.run(None, {"names": np.array(names, object), "values": values})[0], expected)


def test_a_model_without_names_takes_slots(dicts: list[dict[str, Any]], tmp_path: Path):
    model = Model("dual-auc", features=Hashed(names=False))
    block = Block.of_dicts(dicts[:100], [1, -1] * 50, features=Hashed(names=False))
    model.learn(block)
    for to in ("sql", "onnx"):
        with pytest.raises(ExportError, match=r'the model remembers no names. Use inputs="indices"'):
            export(model, tmp_path / "model", to, inputs="names")
    assert list(tmp_path.iterdir()) == []
    export(model, tmp_path / "model.onnx")
    agree(scorers.onnx_run(tmp_path / "model.onnx", block)[0], model.score(block))
    export(model, tmp_path / "model.sql")
    agree(scorers.sql_scores(tmp_path / "model.sql", block, block.indices, "sqlite"), model.score(block))


def test_names_that_are_cut_are_not_exported_as_if_they_were_whole(tmp_path: Path):
    rows = [{"a": "x" * 300}, {"a": "y"}] * 10
    model = Model("dual-auc")
    model.learn(Block.of_dicts(rows, [1, -1] * 10))
    with pytest.raises(ExportError, match="the names of 1 of 2 features are not known in full"):
        export(model, tmp_path / "model.sql")
    export(model, tmp_path / "model.csv")
    assert sorted(line.split(",")[1:3] for line in (tmp_path / "model.csv").read_text().splitlines()[1:]) == [
        ["", ""],
        ["a", "y"],
    ]


def test_names_that_share_a_slot_are_counted(dicts: list[dict[str, Any]], tmp_path: Path):
    model = Model("dual-auc", features=Hashed(bits=8))
    model.learn(Block.of_dicts(dicts[:2000], [1, -1] * 1000, features=Hashed(bits=8)))
    for to in ("sql", "onnx"):
        (note,) = export(model, tmp_path / "model", to).notes
        assert "names share the slot of another" in note
    for to in ("c", "js", "csv", "vw"):
        notes = export(model, tmp_path / "model", to).notes
        assert not any("share" in note for note in notes)


def test_wrong_values_are_refused(of_text: Named, tmp_path: Path):
    export(of_text.model, tmp_path / "model.mjs")
    code = """
    import { score } from "./model.mjs";
    const rows = [
      { price: "much" }, { age: Infinity }, { when: "soon" }, { site: ["a", ["b"]] }, { site: () => 1 },
      { site: "\\ud800" }, { price: "1e999" }, { site: { deep: { x: 1e39 } } },
    ];
    const said = rows.map((row) => { try { return score(row); } catch (error) { return error.message; } });
    console.log(JSON.stringify(said));
    """
    assert scorers.javascript(tmp_path, code) == [
        'price: has numbers, got "much".',
        'age: must have finite numbers, got "Infinity".',
        'when: has dates (YYYY-MM-DD, with or without HH:MM), got "soon".',
        'site: a list must hold finite numbers, text or booleans, got "b".',
        'site: has a value that cannot be a feature, got "function".',
        "half of a surrogate pair is no character.",
        'price: has numbers, got "1e999".',
        'site.deep: must have finite numbers within float32, got "1e+39".',
    ]
    if scorers.CC is None:
        return
    export(of_text.model, tmp_path / "model.h")
    code = """
    #include "model.h"
    int main(void) {
        model_row row = {0};
        int wrong = 0;
        model_row_text(&row, "price", "much");
        wrong += !isnan(model_row_score(&row));
        model_row_number(&row, "age", INFINITY);
        wrong += !isnan(model_row_score(&row));
        model_row_text(&row, "when", "soon");
        wrong += !isnan(model_row_score(&row));
        model_row_feature(&row, "a", "b", NAN);
        wrong += !isnan(model_row_score(&row));
        model_row_text(&row, "price", "");  /* missing */
        model_row_text(&row, "site", 0);
        model_row_number(&row, "age", NAN);
        model_row_text(&row, "a column that the model does not have", "x");
        wrong += model_row_score(&row) != 0;
        model_row_free(&row);
        return wrong;
    }
    """
    assert children.run([scorers.compiled(tmp_path, code)]).returncode == 0
