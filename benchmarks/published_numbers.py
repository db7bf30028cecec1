"""Makes src/rarestream/reproduce/published.json out of the numbers that survive of the FTRL-AUC paper.

    python benchmarks/published_numbers.py paper_numbers.json src/rarestream/reproduce/published.json

The input holds the paper's tables, the authors' figure data and result files, and curves read off the vector figures.
What is kept is what tables and figures are compared with; rows count from 1, sets and methods go by one name each.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

CURVES = {"figure5": "data_fig6", "figure8": "data_fig8", "figure10": "data_fig11"}  # the files' names are off
POINTS = {"figure4": "data_fig4", "figure11": "data_fig10"}
LAZY = {"lazy": "ftrl_auc", "non_lazy": "ftrl_auc_non_lazy"}
AVAZU = {"FTRL-AUC": "ftrl_auc", "FTRL-Pro": "ftrl_proximal"}
GRIDS = ["farm-ads/ftrl_auc"]


def curve(rows: list[float], aucs: list[float]) -> dict[str, Any]:
    return {"rows": [int(row) + 1 for row in rows], "test_auc": aucs}


def numbers(found: dict[str, Any]) -> dict[str, Any]:
    table1, table2, table3 = (found[f"table_{number}_from_latex"] for number in ("I", "II", "III"))
    columns = table1["_columns"]
    kept: dict[str, Any] = {
        "table1": {
            name: dict(zip(columns, row, strict=True)) for name, row in table1.items() if not name.startswith("_")
        },
        "table2": {"seconds": table2["run_time_s"], "sparse_ratio": table2["sparse_ratio"], "auc": table2["auc"]},
        "table3": {ratio: table3[f"imbalance_{ratio}"] for ratio in ("0.1", "0.05")},
    }

    def of_each(file: str, shape: Any) -> dict[str, Any]:
        data = found["figures"][file]["data"]
        return {name: {method: shape(one) for method, one in methods.items()} for name, methods in data.items()}

    kept["figure3"] = of_each("data_fig3", lambda one: {"seconds": one["run_time"], "test_auc": one["te_auc"]})
    for figure, file in CURVES.items():
        kept[figure] = of_each(file, lambda one: curve(one["iter"], one["te_auc"]))
    for figure, file in POINTS.items():
        kept[figure] = of_each(file, lambda one: {"test_auc": one["te_auc"], "sparse_ratio": one["sparse_ratio"]})

    read_off = found["figure_curves_from_vector_pdf"]["curves"]
    for name, curves in read_off.items():
        for word, one in curves.items():
            figure = "figure" + one["figure"].split("-")[1]
            method = {**LAZY, **AVAZU}[word]
            points = curve(one["sample_index_0based"], one["te_auc_mean"])
            kept.setdefault(figure, {}).setdefault(name, {})[method] = points
    kept["grids"] = {}
    for name in GRIDS:
        grid = found["results"][name]["cv_grid"]
        kept["grids"][name] = {"columns": ["gamma", "l1", "valid_auc", "test_auc", "sparse_ratio"], "rows": []}
        for gamma, l1, valid, test, ratio, _ in grid["rows"]:
            kept["grids"][name]["rows"].append([gamma, l1, valid, test, ratio])
    return kept


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    kept = numbers(json.loads(source.read_text("utf-8")))
    lines = [f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}" for name, value in kept.items()]
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
