"""The file of --config: options for reading, in TOML.

    format = "csv"

    [columns]
    label = "clicked"
    numeric = ["price", "age"]

    [read]
    max_bad_rows = 10

The words are those of the command line, without the two dashes in front; dashes within may be underscores. They may be
at the top, or in the tables `columns` and `read`: which of them makes no difference.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rarestream.cli import failures
from rarestream.cli.parser import UsageError, require_choice, suggestion
from rarestream.errors import plain

TABLES = ("columns", "read")
OPTION = "--config"


def read_config(path: Path) -> dict[str, Any]:
    """The options of a file by name, checked; some may not be those of the command or the format."""
    import tomllib

    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        failures.exit_with(f"{plain(path)}: cannot be read: {(error.strerror or str(error)).lower()}.", failures.FAILED)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{plain(path)}: is not valid TOML: {error}.", OPTION) from None
    found: dict[str, Any] = {}
    for key, value in content.items():
        if key in TABLES and isinstance(value, dict):
            for inner, inner_value in value.items():
                _add(found, path, inner, f"[{key}] {inner}", inner_value)
        else:
            _add(found, path, key, key, value)
    return found


def _add(found: dict[str, Any], path: Path, key: str, shown: str, value: Any) -> None:
    from rarestream.readers.formats import format_names, options_of_formats
    from rarestream.readers.options import OptionError

    name, place = key.replace("-", "_"), f"{plain(path)}: {plain(shown)}"
    infos = {name: info for name, (info, _) in options_of_formats().items() if info.commands != "none"}
    if name != "format" and name not in infos:
        hint = suggestion(name, [*infos, "format", *TABLES])
        raise UsageError(f"{place}: no option for reading has this name.{hint}", OPTION)
    if name in found:
        raise UsageError(f"{place}: is given twice in this file.", OPTION)
    if name == "format":
        require_choice(OPTION, value, format_names(), place)
        found[name] = value
        return
    try:
        found[name] = infos[name].checked(value)
    except OptionError as error:
        raise UsageError(f"{place}: {error.reason}", OPTION) from None
