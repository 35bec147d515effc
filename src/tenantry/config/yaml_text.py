"""The only importer of PyYAML; imported when a YAML catalogue is read, and then only.

The loader is PyYAML's safe one, made plainer: every plain scalar but null is text (so that a tier ``1`` and
a service ``no`` stay what they are), there are no merge keys, no tags, no aliases (a few lines of them
unfold to gigabytes), and a key stands once.
"""

from typing import Any

import yaml

from tenantry.config.syntax import unreadable
from tenantry.kernel.errors import InvalidValue

_NULL = "tag:yaml.org,2002:null"
_READ = {_NULL, *(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")), None}  # None: any other


class _PlainLoader(yaml.SafeLoader):
    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            mark: Any = event.start_mark
            raise yaml.MarkedYAMLError(problem="aliases are not read", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        found = super().construct_mapping(node, deep=deep)
        if len(found) != len(node.value):
            raise yaml.MarkedYAMLError(problem="a key stands twice", problem_mark=node.start_mark)
        return found


_PlainLoader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] == _NULL]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_PlainLoader.yaml_constructors = {
    tag: build for tag, build in yaml.SafeLoader.yaml_constructors.items() if tag in _READ
}


def parse_yaml_documents(text: str) -> list[object]:
    """The documents of a YAML stream as plain objects. Raises :class:`InvalidValue` with line and column."""
    try:
        return list(yaml.load_all(text, Loader=_PlainLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "document"
        raise _unreadable(place, str(error.problem or error.context)) from None
    except RecursionError:
        raise _unreadable("document", "it is nested too deeply to be a catalogue") from None
    except yaml.YAMLError as error:  # a character that YAML forbids
        raise _unreadable("document", str(error).partition("\n")[0]) from None


def _unreadable(place: str, why: str) -> InvalidValue:
    return unreadable(place, "YAML", f"{why[:1].upper()}{why[1:]}.")
