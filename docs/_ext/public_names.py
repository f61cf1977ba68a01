"""A table of what a module exports, links for names that are exported twice, and bars in docstrings.

``.. public-names:: orthobandit.design`` lists ``orthobandit.design.__all__``: every name, linked, and the
first sentence of its docstring; ``:without:`` names a package that has some of them on a page of its own.
Whatever ``orthobandit`` exports is described in its package; the short name, ``:class:`orthobandit.Design```,
leads there too. Docstrings write absolute values with plain bars, which mean something else to
reStructuredText: they are escaped outside of code.
"""

import inspect
import re
from importlib import import_module
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")
CODE_OR_BAR = re.compile(r"(``.*?``)|\|")


def barred(line: str) -> str:
    """Return a line of a docstring with the bars outside of code escaped."""
    if line.lstrip().startswith((">>>", "...")):
        return line
    return CODE_OR_BAR.sub(lambda found: found[1] or r"\|", line)


def escape_bars(*event: Any) -> None:
    """Escape the bars of a docstring in place."""
    lines: list[str] = event[-1]
    lines[:] = map(barred, lines)


def exported(module: str) -> list[str]:
    """Return the public names of a module, without those that begin with an underscore."""
    return [name for name in getattr(import_module(module), "__all__", []) if not name.startswith("_")]


def sentence(value: Any) -> str:
    """Return what the first line of a docstring says, or that there is none."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return "A value, explained below."
    first = (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")
    return ROLE.sub(r"``\1``", barred(first))


class PublicNames(SphinxDirective):
    """Table of the names that a module exports."""

    required_arguments = 1
    option_spec = {"without": directives.unchanged}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        module = self.arguments[0]
        elsewhere = exported(self.options["without"]) if "without" in self.options else []
        names = [name for name in exported(module) if name not in elsewhere]
        if not names:
            return []
        lines = [".. list-table::", "   :widths: 35 65", ""]
        for name in names:
            lines += [
                f"   * - :py:obj:`~{module}.{name}`",
                f"     - {sentence(getattr(import_module(module), name))}",
            ]
        found = nodes.container()
        self.state.nested_parse(StringList(lines, source=self.get_source_info()[0]), 0, found)
        return found.children


def link_short_names(_: Sphinx, env: BuildEnvironment) -> list[str]:
    """Let ``orthobandit.Name``, and its members, lead to where the object is described."""
    objects = env.get_domain("py").data["objects"]
    homes = {}
    for name in exported("orthobandit"):
        parts = getattr(import_module("orthobandit"), name).__module__.split(".")
        # The outermost package that exports it: most are in orthobandit.policy, some in a package of that.
        packages = [".".join(parts[:count]) for count in range(2, len(parts) + 1)]
        package = next(one for one in packages if name in exported(one) or one == packages[-1])
        homes[f"{package}.{name}"] = f"orthobandit.{name}"
    for full, entry in list(objects.items()):
        for home, short in homes.items():
            if full == home or full.startswith(f"{home}."):
                known = short + full.removeprefix(home)
                objects.setdefault(known, ObjectEntry(entry.docname, entry.node_id, entry.objtype, True))
    return []


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and the links."""
    app.add_directive("public-names", PublicNames)
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("env-updated", link_short_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
