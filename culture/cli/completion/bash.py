"""The bash script; for the old bash of macOS it uses ``case``, no associative arrays."""

from culture.cli.command_tree import FILE, NICKS_COMMAND, CommandNode, rows

_SCRIPT = """\
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


def script(root: CommandNode) -> str:
    """Return the bash completion script for all commands below ``root``."""
    cases = "\n".join(_case(path, node) for path, node in rows(root))
    return _SCRIPT % {"cases": cases, "nicks": NICKS_COMMAND, "file": FILE}


def _case(path: str, node: CommandNode) -> str:
    takes = " ".join(f"{name}={_packed(kind)}" for name, kind in node.takes.items())
    known = {"inner": " ".join(node.inner), "options": " ".join(node.options), "takes": takes}
    said = [f"{name}='{value}'" for name, value in {**known, "argument": _packed(node.argument)}.items() if value]
    return f"    '{path}') {' '.join(said)} ;;"


def _packed(kind: str) -> str:
    return kind.replace(" ", ",")
