"""Scripts that complete the commands in a shell, made from their declaration; runs no shell."""

from toolroll.cli import UsageError
from toolroll_suite.nearest import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolroll.tool import Option
    from toolroll_suite.commands import Command


def script(shell: str, commands: "Sequence[Command]") -> str:
    """What the shell has to read.

    Raises: UsageError.
    """
    if shell not in SHELLS:
        raise UsageError(f"there is no completion for '{shell}'{nearest(shell, SHELLS)}")
    return SHELLS[shell](commands)


# -- bash --------------------------------------------------------------------------------------------

BASH = """\
# bash completion of toolroll: eval "$(toolroll completion bash)"
_toolroll() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words=
    local IFS=$'\\n'
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        words='{commands}'
    else
        case ${{COMP_WORDS[1]}}$before in
{values}
        esac
        case ${{COMP_WORDS[1]}}$COMP_CWORD in
{places}
        esac
    fi
    COMPREPLY=($(compgen -W "${{words// /$IFS}}" -- "$word"))
}}
complete -o filenames -F _toolroll toolroll"""


def bash(commands: "Sequence[Command]") -> str:
    """For bash 3.2 and newer."""
    values, places = [], []
    for command in commands:
        values += [
            f"            {command.name}--{option.name}) "
            f'COMPREPLY=($(compgen -{"d" if option.value == "DIR" else "f"} -- "$word")); return ;;'
            for option in command.options
            if option.kind
        ]
        for index, word in enumerate(command.words):
            place = "*" if word.count else index + 2
            words = " ".join([*word.choices(), *_flags(command)])
            places.append(f"            {command.name}{place}) words='{words}' ;;")
        if not any(word.count for word in command.words):
            places.append(f"            {command.name}*) words='{' '.join(_flags(command))}' ;;")
    return BASH.format(
        commands=" ".join(command.name for command in commands),
        values="\n".join(values),
        places="\n".join(places),
    )


def _flags(command: "Command") -> list[str]:
    return [*(f"--{option.name}" for option in command.options), "--help"]


# -- zsh ---------------------------------------------------------------------------------------------

ZSH = """\
#compdef toolroll
# zsh completion of toolroll: eval "$(toolroll completion zsh)"
_toolroll() {{
    if (( CURRENT == 2 )); then
        local -a commands=(
{commands}
        )
        _describe command commands
        return
    fi
    shift words
    (( CURRENT-- ))
    case $words[1] in
{cases}
    esac
}}
compdef _toolroll toolroll"""


def zsh(commands: "Sequence[Command]") -> str:
    """For zsh with its completion system, which `compinit` starts."""
    cases = []
    for command in commands:
        specs = [
            f"'{'*' if word.count else index + 1}:{word.name}:({' '.join(word.choices())})'"
            for index, word in enumerate(command.words)
        ]
        specs += [_zsh_option(option) for option in command.options]
        cases.append(f"        {command.name}) _arguments {' '.join([*specs, '--help'])} ;;")
    return ZSH.format(
        commands="\n".join(f"            {_quoted(f'{one.name}:{one.about}')}" for one in commands),
        cases="\n".join(cases),
    )


def _zsh_option(option: "Option") -> str:
    values = "_directories" if option.value == "DIR" else "_files"
    value = f":{option.value}:{values}" if option.kind else ""
    return _quoted(f"{'*' if option.many else ''}--{option.name}[{option.help}]{value}")


# -- fish --------------------------------------------------------------------------------------------


def fish(commands: "Sequence[Command]") -> str:
    """For fish 3 and newer."""
    lines = ["# fish completion of toolroll: toolroll completion fish | source"]
    lines.append("complete -c toolroll -f")
    for command in commands:
        about = _quoted(command.about)
        lines.append(f"complete -c toolroll -n __fish_use_subcommand -a {command.name} -d {about}")
        here = f"complete -c toolroll -n '__fish_seen_subcommand_from {command.name}'"
        lines += [
            f"{here} -a '{' '.join(word.choices())}'" for word in command.words if word.choices()
        ]
        lines += [f"{here} {_fish_option(option)}" for option in command.options]
    return "\n".join(lines)


def _fish_option(option: "Option") -> str:
    files = "-r -a '(__fish_complete_directories)'" if option.value == "DIR" else "-r -F"
    return f"-l {option.name} -d {_quoted(option.help)}" + (f" {files}" if option.kind else "")


def _quoted(text: str) -> str:
    """As all three shells quote; what fish alone reads otherwise does not occur here."""
    return "'" + text.replace("'", "'\\''") + "'"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
