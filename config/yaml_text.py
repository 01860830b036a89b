"""Reads settings from YAML text: Kafka's key names, flat or nested, each with its line. Pure.

Nested mappings are joined with dots, lists with commas. Scalars are taken as they are written, so
that `yes`, `010` and `1_000` mean what the key's own type says and not what YAML makes of them.
Aliases are refused: settings do not need them, and they can grow without bound.
"""

from collections.abc import Iterator

import yaml


class _Loader(yaml.SafeLoader):
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise ValueError(f"line {mark.line + 1}: aliases are not understood here")
        return super().compose_node(parent, index)


def read_yaml(text: str) -> Iterator[tuple[str, str, int]]:
    """Each key, its text and its line, from 1. ValueError, with the line, when it is malformed."""
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"{line}{error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    except RecursionError as error:
        raise ValueError("settings are nested too deeply") from error
    if root is None or _is_null(root):
        return iter(())
    if not isinstance(root, yaml.MappingNode):
        raise _fault(root, "the file must be a mapping of settings")
    return _entries(root, "")


def _entries(mapping: yaml.MappingNode, prefix: str) -> Iterator[tuple[str, str, int]]:
    for key, value in mapping.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _fault(key, "a key must be a name")
        name = f"{prefix}{key.value}"
        if isinstance(value, yaml.MappingNode):
            yield from _entries(value, f"{name}.")
        else:
            yield name, _text(name, value), _line(key)


def _text(name: str, node: yaml.Node) -> str:
    if isinstance(node, yaml.SequenceNode):
        return ",".join(_text(name, each) for each in node.value)
    if not isinstance(node, yaml.ScalarNode):
        raise _fault(node, f"{name} holds a mapping inside of a list")
    if _is_null(node):
        raise _fault(node, f"{name} has no value; write '' for the empty one")
    return str(node.value)


def _is_null(node: yaml.Node) -> bool:
    return bool(node.tag == "tag:yaml.org,2002:null")


def _fault(node: yaml.Node, text: str) -> ValueError:
    return ValueError(f"line {_line(node)}: {text}")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
