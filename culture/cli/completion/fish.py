"""The fish script; it shows a description beside each command and option."""

from collections.abc import Mapping

from culture.cli.command_tree import CommandNode, rows

_SCRIPT = """\
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


def script(root: CommandNode) -> str:
    """Return the fish completion script for all commands below ``root``."""
    return _SCRIPT % {"cases": "\n".join(_case(path, node) for path, node in rows(root))}


def _case(path: str, node: CommandNode) -> str:
    said = [f"        case '{path}'"]
    if node.inner:
        said.append(
            f"            set __culture_inner {_described({name: each.help for name, each in node.inner.items()})}"
        )
    said.append(f"            set __culture_options {_described(node.options)}")
    if node.takes:
        takes = " ".join(f"'{name}={kind}'" for name, kind in node.takes.items())
        said.append(f"            set __culture_takes {takes}")
    if node.argument:
        said.append(f"            set __culture_argument '{node.argument}'")
    return "\n".join(said)


def _described(entries: Mapping[str, str]) -> str:
    return " ".join(f"'{name}'\\t'{_quoted(text)}'" for name, text in entries.items())


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
