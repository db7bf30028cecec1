"""The code of the pages that need a session of Spark runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_docs import PAGES, WITH_SPARK, name, run_page


@pytest.mark.parametrize("page", [page for page in PAGES if name(page) in WITH_SPARK], ids=name)
def test_the_code_of_a_page_runs(spark, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    hadoop = spark._jvm.org.apache.hadoop.fs
    files = hadoop.FileSystem.get(spark._jsc.hadoopConfiguration())
    before = files.getWorkingDirectory()
    files.setWorkingDirectory(hadoop.Path(str(tmp_path)))  # of the JVM, which does not follow chdir
    try:
        run_page(page, tmp_path, monkeypatch)
    finally:
        files.setWorkingDirectory(before)
