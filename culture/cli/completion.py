"""``culture completion``: scripts that complete commands without starting a program.

The script of a shell contains all commands and options (``command_tree``), so completing takes no time. Only nicks are
read from agents.yaml, by sed. For the old bash of macOS the bash script uses ``case``, no associative arrays; those of
zsh and fish show a description beside each command and option.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import typer

from culture.cli.agent_access import open_to_agents
from culture.cli.command_tree import FILE, NICKS_COMMAND, CommandNode, rows, tree
from culture.cli.help import TITLES
from culture.clients.shared.backends import installed

_BASH = """\
# Completion of culture for bash; written by `culture completion bash`.
_culture_at() {
    inner= options= takes= argument=
    case $1 in
%(cases)s
    esac
}

_culture_kind() {
    case $1 in
    nicks) %(nicks)s"%(file)s" 2>/dev/null ;;
    files) compopt -o filenames 2>/dev/null; compgen -f -- "$2" ;;
    *) echo "${1//,/ }" ;;
    esac
}

_culture() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local inner options takes argument path= index word each words IFS=$' \t\n'
    _culture_at ''
    for ((index = 1; index < COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        case " $inner " in *" $word "*) path="${path:+$path }$word"; _culture_at "$path" ;; esac
    done
    case $current in
    -*) words=$options ;;
    *) words=${inner:-$(_culture_kind "$argument" "$current")} ;;
    esac
    for each in $takes; do
        [ "${each%%%%=*}" = "$previous" ] && words=$(_culture_kind "${each#*=}" "$current")
    done
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}

complete -F _culture culture
"""


def bash_script(root: CommandNode) -> str:
    """Return the bash completion script for all commands below ``root``."""
    cases = "\n".join(_bash_case(path, node) for path, node in rows(root))
    return _BASH % {"cases": cases, "nicks": NICKS_COMMAND, "file": FILE}


def _bash_case(path: str, node: CommandNode) -> str:
    takes = " ".join(f"{name}={_bash_packed(kind)}" for name, kind in node.takes.items())
    known = {"inner": " ".join(node.inner), "options": " ".join(node.options), "takes": takes}
    said = [f"{name}='{value}'" for name, value in {**known, "argument": _bash_packed(node.argument)}.items() if value]
    return f"    '{path}') {' '.join(said)} ;;"


def _bash_packed(kind: str) -> str:
    return kind.replace(" ", ",")


_ZSH = """\
#compdef culture
# Completion of culture for zsh; written by `culture completion zsh`.
_culture_at() {
    inner=() options=() takes=() argument=
    case $1 in
%(cases)s
    esac
}

_culture_kind() {
    case $1 in
    nicks) compadd -- $(%(nicks)s"%(file)s" 2>/dev/null) ;;
    files) _files ;;
    ?*) compadd -- ${=1} ;;
    esac
}

_culture() {
    local -a inner options
    local -A takes
    local argument where= word
    _culture_at ''
    for word in ${words[2,CURRENT-1]}; do
        if (( ${inner[(I)$word:*]} )); then
            where="${where:+$where }$word"
            _culture_at "$where"
        fi
    done
    local previous=$words[CURRENT-1]
    if (( ${+takes[$previous]} )); then
        _culture_kind "$takes[$previous]"
    elif [[ $words[CURRENT] == -* ]]; then
        _describe option options
    elif (( $#inner )); then
        _describe command inner
    else
        _culture_kind "$argument"
    fi
}

if [[ $funcstack[1] == _culture ]]; then
    _culture "$@"
else
    compdef _culture culture
fi
"""


def zsh_script(root: CommandNode) -> str:
    """Return the zsh completion script for all commands below ``root``."""
    cases = "\n".join(_zsh_case(path, node) for path, node in rows(root))
    return _ZSH % {"cases": cases, "nicks": NICKS_COMMAND, "file": FILE}


def _zsh_case(path: str, node: CommandNode) -> str:
    inner = _zsh_described({name: each.help for name, each in node.inner.items()})
    takes = " ".join(f"{name} '{kind}'" for name, kind in node.takes.items())
    argument = f" argument='{node.argument}'" if node.argument else ""
    return f"    '{path}') inner=({inner}) options=({_zsh_described(node.options)}) takes=({takes}){argument} ;;"


def _zsh_described(entries: Mapping[str, str]) -> str:
    return " ".join(f"'{name}:{_zsh_quoted(text)}'" for name, text in entries.items())


def _zsh_quoted(text: str) -> str:
    return text.replace("'", "'\\''")


_FISH = """\
# Completion of culture for fish; written by `culture completion fish`.
function __culture_at
    set -g __culture_inner
    set -g __culture_options
    set -g __culture_takes
    set -g __culture_argument ''
    switch "$argv[1]"
%(cases)s
    end
end

function __culture_kind
    switch "$argv[1]"
        case nicks
            set -l home $HOME/.culture
            set -q CULTURE_HOME; and set home $CULTURE_HOME
            sed -n 's/.*nick["\\']*: *["\\']*\\([A-Za-z0-9_-]*\\).*/\\1/p' $home/agents.yaml 2>/dev/null
        case files
            __fish_complete_path (commandline -ct)
        case '*'
            string split ' ' -- $argv[1]
    end
end

function __culture_complete
    set -l said (commandline -opc)
    set -l current (commandline -ct)
    set -l path ''
    __culture_at ''
    for word in $said[2..-1]
        if string match -q -- "$word"\\t'*' $__culture_inner
            set path (string trim -- "$path $word")
            __culture_at $path
        end
    end
    for each in $__culture_takes
        set -l pair (string split -m 1 '=' -- $each)
        if test "$pair[1]" = "$said[-1]"
            __culture_kind "$pair[2]"
            return
        end
    end
    if string match -q -- '-*' $current
        printf '%%s\\n' $__culture_options
    else if set -q __culture_inner[1]
        printf '%%s\\n' $__culture_inner
    else
        __culture_kind "$__culture_argument"
    end
end

complete -c culture -f -a '(__culture_complete)'
"""


def fish_script(root: CommandNode) -> str:
    """Return the fish completion script for all commands below ``root``."""
    return _FISH % {"cases": "\n".join(_fish_case(path, node) for path, node in rows(root))}


def _fish_case(path: str, node: CommandNode) -> str:
    said = [f"        case '{path}'"]
    if node.inner:
        said.append(
            f"            set __culture_inner {_fish_described({name: each.help for name, each in node.inner.items()})}"
        )
    said.append(f"            set __culture_options {_fish_described(node.options)}")
    if node.takes:
        takes = " ".join(f"'{name}={kind}'" for name, kind in node.takes.items())
        said.append(f"            set __culture_takes {takes}")
    if node.argument:
        said.append(f"            set __culture_argument '{node.argument}'")
    return "\n".join(said)


def _fish_described(entries: Mapping[str, str]) -> str:
    return " ".join(f"'{name}'\\t'{_fish_quoted(text)}'" for name, text in entries.items())


def _fish_quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


class Shell(StrEnum):
    """The shells for which there is a completion script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_SCRIPTS = {Shell.BASH: bash_script, Shell.ZSH: zsh_script, Shell.FISH: fish_script}


@open_to_agents
def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", show_default=False, help="bash, zsh or fish.")],
) -> None:
    """Print a script that completes commands, options, nicks and backends.

    bash: eval "$(culture completion bash)" in ~/.bashrc

    zsh: eval "$(culture completion zsh)" in ~/.zshrc, after compinit

    fish: culture completion fish > ~/.config/fish/completions/culture.fish
    """
    words = {"BACKEND": sorted(installed()), "TOPIC": TITLES}
    typer.echo(_SCRIPTS[shell](tree(words)), nl=False)
