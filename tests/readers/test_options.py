"""Reading options: declared once, checked, remembered; the same in every format that has them."""

from __future__ import annotations

import dataclasses
import io
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from rarestream import DataError, read
from rarestream.readers import formats
from rarestream.readers.formats import all_formats, find_format, format_names, format_of_suffix
from rarestream.readers.formats.svmlight import FORMAT, SvmlightOptions
from rarestream.readers.options import FormatOptions, OptionError, option, options_of
from rarestream.readers.sources import expand
from tests import children


@dataclass(frozen=True, kw_only=True)
class SomeOptions(FormatOptions):
    ignore: tuple[str, ...] = option((), metavar="NAMES", help="Columns to leave out.")
    numbers: str = option("soft", help="How.", choices=("soft", "raw", "both"))
    rate: float = option(0.5, help="A rate.", min=0, max=1)
    bits: int = option(22, help="Bits.", min=1, max=31)
    counts: bool = option(False, help="Whether to count.")
    quiet: bool = option(False, help="Nobody remembers it.", remembered="never")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"ignore": 3}, "ignore must be a list of names, got 3."),
        ({"ignore": ["a", 1]}, "ignore must be a list of names, got"),
        ({"ignore": None}, "ignore must be a list of names, got None."),
        ({"numbers": "hard"}, "numbers must be one of 'soft', 'raw', 'both', got 'hard'."),
        ({"rate": 2}, "rate must be between 0 and 1, got 2."),
        ({"rate": "0.5"}, "rate must be between 0 and 1, got '0.5'."),
        ({"rate": float("nan")}, "rate must be between 0 and 1, got nan."),
        ({"bits": 2.5}, "bits must be between 1 and 31, got 2.5."),
        ({"bits": True}, "bits must be between 1 and 31, got True."),
        ({"counts": 1}, "counts must be True or False, got 1."),
        ({"max_bad_rows": -1}, "max_bad_rows must be >= 0, got -1."),
        ({"labels": "no"}, "labels must be one of 'required', 'missing', 'optional', got 'no'."),
        ({"memory": 0}, "memory must be >= 1 byte, got 0."),
        ({"shuffle": "x"}, "shuffle must be a whole number, got 'x'."),
        ({"positive": ""}, "positive must be a label in the file, got ''."),
        ({"positive": float("inf")}, "positive must be a label in the file, got inf."),
        ({"classes": ("a", "a")}, "classes must be two different labels"),
        ({"classes": "1"}, "classes must be two different labels"),
    ],
)
def test_a_value_that_is_not_allowed_is_named_with_its_rule(given: dict, says: str) -> None:
    with pytest.raises(OptionError) as raised:
        SomeOptions(**given)
    assert str(raised.value).startswith(f"read: {says}")
    assert raised.value.option in given
    assert raised.value.reason in str(raised.value)
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.option) == (str(raised.value), raised.value.option)


def test_values_are_kept_in_one_form() -> None:
    options = SomeOptions(ignore=["a", "b"], rate=1, positive="2.0", classes=["ham", "spam"])
    assert (options.ignore, options.rate, options.positive, options.classes) == (("a", "b"), 1.0, 2.0, ("ham", "spam"))
    assert SomeOptions(ignore="a,b").ignore == ("a,b",)
    assert SomeOptions(positive="spam").positive == "spam"
    assert SomeOptions(positive=True).positive == "true"


def test_what_is_remembered_gives_the_same_options_again() -> None:
    options = SomeOptions(ignore=("a",), counts=True, positive="spam", max_bad_rows=3, shuffle=5, quiet=True, threads=2)
    kept = options.settings()
    assert kept == {
        "ignore": ["a"],
        "numbers": "soft",
        "rate": 0.5,
        "bits": 22,
        "counts": True,
        "positive": "spam",
        "classes": None,
        "max_bad_rows": 3,
        "shuffle": 5,
        "finished": True,
    }
    again = SomeOptions.from_settings(kept)
    assert again == dataclasses.replace(options, quiet=False, threads=None)


def test_an_older_file_lacks_options_and_a_newer_one_has_more() -> None:
    assert SomeOptions.from_settings({"bits": 10, "later": 1, "quiet": True}) == SomeOptions(bits=10)
    with pytest.raises(OptionError, match="bits must be"):
        SomeOptions.from_settings({"bits": "10"})


def test_numbers_only_are_labels_of_svmlight() -> None:
    assert SvmlightOptions(positive="7").positive == 7.0
    with pytest.raises(OptionError, match="positive must be a finite number that is a label in the file, got 'spam'"):
        SvmlightOptions(positive="spam")
    with pytest.raises(OptionError, match="classes must be two different labels"):
        SvmlightOptions(classes=("ham", "spam"))


def test_an_unknown_option_is_named_with_the_nearest_one() -> None:
    with pytest.raises(OptionError, match=r"read: svmlight has no option max_bad_row. Did you mean max_bad_rows\?"):
        read(io.BytesIO(b"1 1:1\n"), max_bad_row=1)
    with pytest.raises(DataError, match=r"read: svmlight has no option qwertz. It has cache, cache_dir, classes, "):
        read(io.BytesIO(b"1 1:1\n"), qwertz=1)


def test_an_option_of_another_format_is_named_with_that_format(tab_format: str) -> None:
    says = r"read: svmlight has no option row_id; tab has it. If the data are of another format, pass format=NAME."
    with pytest.raises(OptionError, match=says):
        read(io.BytesIO(b"1 1:1\n"), row_id="a")


def test_an_option_that_several_formats_have_is_the_same_in_all(tab_format: str) -> None:
    declared: dict[str, object] = {}
    flags: dict[str, str] = {}
    for format in all_formats():
        for name, info in options_of(format.options).items():
            assert declared.setdefault(name, info) == info, f"{format.name} declares {name} otherwise"
            assert info.help.endswith(".") and len(info.help) < 120
            for flag in (*info.flags, info.off):
                assert flag is None or flags.setdefault(flag, name) == name


def test_a_format_is_its_module_and_nothing_else(tab_format: str, tmp_path: Path) -> None:
    assert format_names() == sorted({*format_names(), "tab"})
    for file in ("a.tab", "A.TAB.gz", "x/b.tabbed.zst"):
        found = format_of_suffix(file)
        assert found is not None and found.name == "tab"
    path = tmp_path / "a.tab"
    path.write_text("y\ta\tb\nyes\t1\t2\nno\t\t4\n")
    for stream in (read(path), read(io.BytesIO(path.read_bytes()), "tab")):
        (block,) = stream
        assert block.labels is not None
        assert (block.labels.tolist(), block.indices.tolist()) == ([1, -1], [1, 2, 2])


def test_a_format_is_found_by_the_suffix_of_the_first_file(tmp_path: Path) -> None:
    for name, found in (("a.svm", "svmlight"), ("a.libsvm.xz", "svmlight"), ("svm", None), ("-", None)):
        format = format_of_suffix(name)
        assert (format and format.name) == found
    path = tmp_path / "data"
    path.write_bytes(b"1 1:1\n")
    assert find_format(None, expand(path)) is FORMAT
    with pytest.raises(DataError, match="read: format must be one of .*svmlight.*, got 'xml'"):
        read(path, "xml")
    with pytest.raises(DataError, match="format must be one of"):
        read(path, "__init__")


def test_reading_a_known_suffix_imports_no_other_format(tab_format: str) -> None:
    format_of_suffix("a.svm")
    assert "rarestream.readers.formats.tab" not in sys.modules
    format_of_suffix("a.tab")
    assert "rarestream.readers.formats.tab" in sys.modules


def test_the_options_of_formats_need_no_numpy() -> None:
    code = (
        "import sys; from rarestream.readers.formats import options_of_formats\n"
        "assert options_of_formats(); print(*sys.modules)"
    )
    loaded = set(children.run([sys.executable, "-c", code]).stdout.split())
    assert "rarestream.readers.formats.svmlight" in loaded
    assert loaded.isdisjoint({"numpy", "rarestream._native", "rarestream.blocks"})
    assert formats.module_names()[0] <= "svmlight"
