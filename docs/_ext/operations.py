"""A table of the operations of the service, from their declarations.

``.. operations::`` lists every operation: its request, what it does, and the role that a token needs.
"""

import inspect

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from orthobandit.service.api.operations import Operation
from orthobandit.service.app import OPERATIONS
from public_names import ROLE

CODE = "`"


def request_of(operation: Operation) -> str:
    """Return the method and the address, with the query parameters that there are."""
    query = "&".join(f"{name}=" for name in operation.query_names)
    return f"{operation.method} {operation.path_format}{'?' * bool(query)}{query}"


def words_of(operation: Operation) -> str:
    """Return the first paragraph of an operation's docstring, as reStructuredText."""
    words = (inspect.getdoc(operation.endpoint) or "").partition("\n\n")[0].replace("\n", " ")
    # The docstrings are Markdown, as the API's description is.
    return ROLE.sub(r"``\1``", words.replace("``", CODE).replace(CODE, "``"))


class Operations(SphinxDirective):
    """Table of the operations of the service."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        lines = [".. list-table::", "   :widths: 40 48 12", "   :header-rows: 1", ""]
        lines += ["   * - request", "     - what it does", "     - role"]
        for operation in OPERATIONS:
            lines += [
                f"   * - ``{request_of(operation)}``",
                f"     - {words_of(operation)}",
                f"     - {operation.role or 'none'}",
            ]
        table = nodes.container()
        self.state.nested_parse(StringList(lines, source=self.get_source_info()[0]), 0, table)
        return table.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("operations", Operations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
