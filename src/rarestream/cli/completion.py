"""Shell completion: a short script per shell, which asks the program itself for candidates.

    eval "$(rarestream --show-completion bash)"

The script calls `rarestream --complete WORD...` with the words up to the cursor. The answer has a candidate per line,
followed by a tab and its help text. No answer means a file name: these the shell completes better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rarestream.cli.parser import HELP_FLAGS, Command, Group, Parameter, UsageError, require_choice

BASH = """\
_rarestream() {
    local IFS=$'\\n'
    COMPREPLY=($("$1" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _rarestream rarestream
"""
ZSH = """\
#compdef rarestream
_rarestream() {
    local -a found
    found=("${(@f)$("${words[1]}" --complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then
        found=("${(@)found//:/\\\\:}")
        found=("${(@)found/$'\\t'/:}")
        _describe rarestream found
    else
        _files
    fi
}
compdef _rarestream rarestream
"""
FISH = """\
function __rarestream_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l found ($before[1] --complete $before[2..-1] "$current" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete -c rarestream -f -a '(__rarestream_complete)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def script(shell: str) -> str:
    """The completion script of a shell."""
    require_choice("--show-completion", shell, SCRIPTS)
    return SCRIPTS[shell]


def candidates(program: Group, words: Sequence[str], options: Mapping[str, str]) -> list[str]:
    """What the last word may be completed to, given those before it: lines of a candidate, a tab and its help."""
    *before, current = [word for word in words[:-1] if word != "="] + [*words[-1:]] or [""]
    if current == "=":  # bash splits --scale=unit in three
        current = ""
    found = {word: text for word, text in _fitting(program, before, current, options) if word.startswith(current)}
    return [f"{word}\t{text}" for word, text in found.items()]


def _fitting(
    program: Group, before: Sequence[str], current: str, options: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    at: Group | Command = program
    rest = list(before)
    while isinstance(at, Group):
        if at is program and rest and rest[0] in options:
            if rest.pop(0) == "--show-completion":
                yield from ((shell, "") for shell in SCRIPTS)
                return
            continue
        if not rest:
            names = [(name, at.find(name).summary) for name in at.names()]
            flags = [*options.items()] if at is program else []
            yield from [*flags, ("--help", "Show this help.")] if current.startswith("-") else names
            return
        try:
            at = at.find(rest.pop(0))
        except UsageError:
            return
    yield from _of_command(at, rest, current)


def _of_command(command: Command, before: Sequence[str], current: str) -> Iterator[tuple[str, str]]:
    last = command.by_flag.get(before[-1]) if before else None
    if last is not None and last.kind is not bool and last.spec.implied is None:
        yield from _values(last)
    elif "--" in before or not current.startswith("-"):
        return
    else:
        flag, equals, _ = current.partition("=")
        if equals and flag in command.by_flag:
            yield from ((f"{flag}={value}", text) for value, text in _values(command.by_flag[flag]))
            return
        for option in command.options:
            yield from ((flag, option.spec.help) for flag in option.flags if flag.startswith("--"))
        yield HELP_FLAGS[1], "Show this help."


def _values(option: Parameter) -> Iterator[tuple[str, str]]:
    if option.spec.choices is not None:
        yield from ((value, "") for value in option.spec.choices())
