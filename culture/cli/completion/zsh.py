"""The zsh script; it shows a description beside each command and option."""

from collections.abc import Mapping

from culture.cli.command_tree import FILE, NICKS_COMMAND, CommandNode, rows

_SCRIPT = """\
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


def script(root: CommandNode) -> str:
    """Return the zsh completion script for all commands below ``root``."""
    cases = "\n".join(_case(path, node) for path, node in rows(root))
    return _SCRIPT % {"cases": cases, "nicks": NICKS_COMMAND, "file": FILE}


def _case(path: str, node: CommandNode) -> str:
    inner = _described({name: each.help for name, each in node.inner.items()})
    takes = " ".join(f"{name} '{kind}'" for name, kind in node.takes.items())
    argument = f" argument='{node.argument}'" if node.argument else ""
    return f"    '{path}') inner=({inner}) options=({_described(node.options)}) takes=({takes}){argument} ;;"


def _described(entries: Mapping[str, str]) -> str:
    return " ".join(f"'{name}:{_quoted(text)}'" for name, text in entries.items())


def _quoted(text: str) -> str:
    return text.replace("'", "'\\''")
