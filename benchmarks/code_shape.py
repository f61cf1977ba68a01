"""How the source is written: modules, lines, comments, and assignments that pack unrelated values together.

    python -m benchmarks.code_shape            # one line a figure
    python -m benchmarks.code_shape --packed   # the packed assignments, file by file

A tuple assignment such as ``low, high = least(x), most(x)`` is fine: its values belong together. One such as
``names, total = list(labels), 0.0`` packs two thoughts into a line; those are counted. Swaps, and names that
form one of the usual pairs, count as belonging together.
"""

import argparse
import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src"
# Names of values that belong together: all targets of an assignment end in words of one of these sets.
FAMILIES = (
    {"low", "high", "least", "most", "middle", "lower", "upper"},
    {"first", "last", "second"},
    {"left", "right"},
    {"start", "stop", "end", "begin", "step"},
    {"i", "j", "k"},
    {"x", "y", "z"},
    {"a", "b", "c"},
    {"rows", "columns", "cols"},
    {"width", "height"},
    {"old", "new", "before", "after"},
    {"numerator", "denominator"},
    {"above", "below"},
)


def are_related(assignment: ast.Assign) -> bool:
    """Tell whether a tuple assignment holds values that belong together: a swap, or a usual pair."""
    targets = [ast.unparse(target) for target in assignment.targets[0].elts]  # type: ignore[attr-defined]
    values = [ast.unparse(value) for value in assignment.value.elts]  # type: ignore[attr-defined]
    if set(targets) & set(values):
        return True  # a swap or a shift of names, which needs the old values
    words = {target.rpartition(".")[2].strip("_").rpartition("_")[2] for target in targets}
    return any(words <= family for family in FAMILIES)


def packed_assignments(tree: ast.AST) -> Iterator[ast.Assign]:
    """Return assignments of a tuple of unrelated values to as many names."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
            continue
        if isinstance(node.targets[0], ast.Tuple) and not are_related(node):
            yield node


def count_comments(source: str) -> int:
    """Return the number of comments, without those that only speak to tools."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return sum("noqa" not in one and "type: ignore" not in one for one in comments)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--packed", action="store_true", help="list the packed assignments")
    listed = parser.parse_args().packed
    modules = sorted(SOURCE.rglob("*.py"))
    lines = 0
    comments = 0
    assignments = 0
    packed = 0
    for path in modules:
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        lines += len(source.splitlines())
        comments += count_comments(source)
        assignments += sum(
            isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) for node in ast.walk(tree)
        )
        for node in packed_assignments(tree):
            packed += 1
            if listed:
                print(f"{path.relative_to(SOURCE)}:{node.lineno}: {ast.unparse(node)}")
    print(f"{len(modules)} modules, {lines:,} lines")
    print(f"comments: {comments:,}, {comments / lines:.1%} of lines")
    print(f"packed assignments: {packed:,}, {packed / assignments:.1%} of {assignments:,}")


if __name__ == "__main__":
    main()
