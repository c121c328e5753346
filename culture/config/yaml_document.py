"""Reads a YAML file as plain values with their line numbers."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from culture.config.errors import ConfigError, Key, Problem

Value = object
# Aliases may repeat a node, and aliases of aliases multiply: a short file could fill the memory.
MOST_VALUES = 20_000
DEEPEST = 16
_COMMENT_IN_A_LIST = re.compile(r"""(?:[^#"']|"[^"]*"|'[^']*')*\[(?:[^#"'\]]|"[^"]*"|'[^']*')*(?<=[\[,\s])#\S""")


@dataclass
class Document:
    """The contents of a YAML file: its values (``data``), and the line of each key."""

    file: Path
    text: str
    data: dict[str, Value] = field(default_factory=dict)
    lines: dict[Key, int] = field(default_factory=dict)

    def line(self, key: Key) -> int:
        """Return the line of a key; of the nearest block around it if the key is not in the file.

        Lines count from 1; 0 if there is no such block.
        """
        while key and key not in self.lines:
            key = key[:-1]
        return self.lines.get(key, 0)

    def source(self, line: int) -> str:
        """Return the text of the line with this number, from 1 on; "" if there is none."""
        lines = self.text.splitlines()
        return lines[line - 1] if 0 < line <= len(lines) else ""


def read(file: Path) -> Document:
    """Read a YAML file; a missing file gives an empty document. Raises ConfigError."""
    try:
        return parse(file, file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Document(file, "")
    except (OSError, UnicodeDecodeError) as error:
        reason = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise ConfigError([Problem(file, 0, (), f"cannot be read: {reason}")]) from error


def parse(file: Path, text: str) -> Document:
    """Parse the text of a YAML file; raises ConfigError, whose text names ``file``."""
    document = Document(file, text)
    _Reader(document).read()
    return document


class _Reader:
    """Reads the nodes of one document into values."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._yaml = YAML(typ="safe", pure=True)
        self._values = 0

    def read(self) -> None:
        """Fill the document with plain values and the line of each key; raises ConfigError."""
        try:
            root = self._yaml.compose(self._document.text)
        except MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 0
            text = " ".join(filter(None, (error.context, error.problem)))
            raise self._error(line, (), f"not valid YAML: {text}", self._remedy(error)) from error
        except (YAMLError, RecursionError) as error:
            raise self._error(0, (), f"not valid YAML: {error}") from error
        if root is None or _is_null(root):
            return
        if not isinstance(root, MappingNode):
            raise self._error(_line(root), (), "expected keys and values, such as name: spark")
        self._document.data = self._mapping(root, ())

    def _remedy(self, error: MarkedYAMLError) -> str:
        """Return a hint how to mend a syntax error: for tabs, and for ``[#general]``; else "".

        In ``[#general]`` the ``#`` begins a comment inside the list.
        """
        if error.problem and r"'\t'" in error.problem:
            return "indent with spaces, not with tabs"
        marks = (error.context_mark, error.problem_mark)
        near = [self._document.source(mark.line + 1) for mark in marks if mark]
        lines = [*near, *self._document.text.splitlines()]
        return next((unquoted(line) for line in lines if _COMMENT_IN_A_LIST.match(line)), "")

    def _value(self, node: Node, key: Key) -> Value:
        self._values += 1
        if self._values > MOST_VALUES or len(key) > DEEPEST:
            raise self._error(
                _line(node), key[:DEEPEST], "nested too deeply or too large; does an alias repeat itself?"
            )
        if isinstance(node, MappingNode):
            return self._mapping(node, key)
        if isinstance(node, SequenceNode):
            return self._sequence(node, key)
        return self._scalar(node, key)

    def _mapping(self, node: MappingNode, key: Key) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for name_node, value_node in node.value:
            line, name = _line(name_node), name_node.value
            if not isinstance(name_node, ScalarNode) or not isinstance(name, str):
                raise self._error(line, key, "a key must be a word")
            if name in values:
                first = self._document.lines[*key, name]
                raise self._error(line, (*key, name), f"given twice, first on line {first}", "keep one of them")
            self._document.lines[*key, name] = line
            values[name] = self._value(value_node, (*key, name))
        return values

    def _sequence(self, node: SequenceNode, key: Key) -> tuple[Value, ...]:
        values = []
        for number, item in enumerate(node.value):
            self._document.lines[*key, number] = _line(item)
            values.append(self._value(item, (*key, number)))
        return tuple(values)

    def _scalar(self, node: Node, key: Key) -> Value:
        try:
            return self._yaml.constructor.construct_object(node, deep=True)
        except (YAMLError, ValueError) as error:
            raise self._error(_line(node), key, f"cannot make sense of {node.value!r}") from error

    def _error(self, line: int, key: Key, text: str, hint: str = "") -> ConfigError:
        return ConfigError([Problem(self._document.file, line, key, text, hint)])


def unquoted(source: str) -> str:
    """Return the hint for a line in which an unquoted channel name became a YAML comment.

    ``source``: the text of the line.
    """
    word = re.split(r"[\s,\]]", source[source.index("#") :], maxsplit=1)[0]
    return f'in YAML an unquoted # begins a comment: write "{word}" with the quotes'


def _line(node: Node) -> int:
    mark = node.start_mark
    return mark.line + 1 if mark else 0


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == "tag:yaml.org,2002:null"
