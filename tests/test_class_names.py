"""One public class name, one meaning: none is defined twice in the package."""

import ast
from collections import defaultdict

from parsed_source import FILES, PACKAGE, tree


def test_no_public_class_name_is_defined_twice() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for file in FILES:
        for node in tree(file).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(f"{file.relative_to(PACKAGE)}:{node.lineno}")
    doubled = {name: places for name, places in found.items() if len(places) > 1}
    assert not doubled, "\n".join(f"{name}: {', '.join(places)}" for name, places in doubled.items())
