"""The client in JavaScript as it is sent: without comments, indentation and other needless space."""

import re
from pathlib import Path

SOURCE = Path(__file__).with_name("edge.js")


def shipped(source: str) -> str:
    r"""Return a script without what only readers need; it must have no such signs within texts.

    Examples
    --------
    >>> shipped('// Twice.\nconst twice = (x) => {\n  return 2 * x\n}\n')
    'const twice=(x)=>{return 2*x}'
    """
    lines = [line.strip() for line in source.splitlines() if not line.strip().startswith("//")]
    dense = re.sub(r" *([-+*/%=<>|&^?:;,{}()\[\]]) *", r"\1", "\n".join(filter(None, lines)))
    return re.sub(r"\n(?=[})\]])|(?<=[,({\[])\n", "", dense)
