"""Messages for the rules that a row can break, as the native encoder of tables numbers them."""

from __future__ import annotations

from rarestream.errors import advice, plain, quoted

# Messages for the numbers of features::TableRule. {token} is the text that breaks the rule, {field} its column.
CELL_RULES = {
    1: "column {field} has numbers in the first rows, got {token}. ",
    2: "column {field} must have finite numbers, got {token}. ",
    3: "column {field}: the number {token} is too large. Scale the values down.",
    4: "column {field} has dates in the first rows (YYYY-MM-DD, with or without HH:MM), got {token}. ",
    5: "column {field}: an importance must be 0 or a number between 1e-100 and 1e12, got {token}.",
    6: "the cross {field} has more than 65,536 features in this row. Cross columns with fewer words or list elements.",
    7: "duplicate features of this row sum to a value beyond float32. Scale the values down.",
    8: "{field}: a list must hold numbers, text or booleans only, got {token}.",
    9: "column {field} is a label, importance or tag and must be a single value, got {token}.",
    10: "column {field} has bytes that are not text in UTF-8, {token}. ",
    11: "the cross {field}: the product of the numbers of this row is beyond float32. Scale the values down.",
    12: "a name of {field} is too long, {token}. ",
    13: "this row has too many features. ",
}

# Messages for the numbers of dicts::Rule. {token} is the name of a type, or text; {field} a key, or the path to it.
DICT_RULES = {
    20: "a row must be a dict of names and values, got {token}.",
    21: "a key must be text, got {token}. Convert the keys: {{str(key): value for key, value in row.items()}}.",
    22: "{field} has a value of type {token}, which cannot be a feature. Use text, numbers, booleans, dates, None, or "
    "lists and dicts of these.",
    23: "{field} has text that is not valid Unicode, {token!r}: half of a surrogate pair is no character.",
    24: "{field}: dicts are nested more than 64 deep.",
}


def cell_message(rule: int, field: str, token: bytes, planned: bool = False) -> str | None:
    """Return what is wrong with a cell of a table; None for rules of the format's own.

    `planned`: the plan of the columns cannot be changed any more, so that no options can help.
    """
    message = CELL_RULES.get(rule)
    if message is None:
        return None
    message = message.format(field=repr(plain(field)), token=quoted(token))
    text = token.decode(errors="replace")
    if planned:
        return message.rstrip()
    if rule in (1, 4):
        message += "If it is a category, pass " + advice(f"categorical=[{field!r}]", f"--categorical {field}")
        message += f"; if this text means a missing value, {advice(f'missing=[{text!r}]', f'--missing {text}')}."
    elif rule == 2:
        option = advice(f"missing=[{text!r}]", f"--missing {text}")
        message += f"If this text means a missing value, pass {option}."
    elif rule == 10:
        message += f"Leave it out with {advice(f'ignore=[{field!r}]', f'--ignore {field}')}, or convert it to text."
    return message


def dict_message(rule: int, field: str, token: bytes) -> str:
    """Return what is wrong with a row that is a dict."""
    message = cell_message(rule, field, token)
    if message is not None:
        return message
    shown = plain(token.decode(errors="replace"))
    return DICT_RULES[rule].format(field=repr(plain(field)) if field else "a key", token=shown)
