"""Fold the fragments of this folder into CHANGELOG.md: `make changelog VERSION=1.2.0`."""

import re
import sys
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
# In the order of the changelog: who upgrades reads first what breaks.
KINDS = {
    "breaking": "What breaks, and how to move",
    "removed": "Removed",
    "added": "Added",
    "changed": "Changed",
    "fixed": "Fixed",
}
SENTENCE = re.compile(r"\.[)\"”]*$")
NAME = re.compile(r"(\d{3})(?:-[\w-]+)?\.(\w+)\.md")
MARK = "<!-- releases, newest first -->\n"


def fragments(folder: Path) -> dict[str, list[str]]:
    """Return the entries of each kind, by issue; every line of a fragment is one entry."""
    entries: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for path in sorted(folder.glob("*.md")):
        match = NAME.fullmatch(path.name)
        if match is None or match[2] not in KINDS:
            raise SystemExit(
                f"{path.name} must be called NNN.kind.md or NNN-topic.kind.md with a kind of"
                f" {', '.join(KINDS)}"
            )
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        for line in lines:
            if not SENTENCE.search(line):
                raise SystemExit(f"{path.name}: a line is an entry and ends with a full stop: {line[-40:]!r}")
        entries[match[2]] += [f"- {line} (#{int(match[1])})" for line in lines]
    return entries


def section(version: str, day: str, entries: dict[str, list[str]]) -> str:
    """Return the section of one release."""
    blocks = [f"### {KINDS[kind]}\n\n" + "\n".join(lines) for kind, lines in entries.items() if lines]
    return "\n\n".join([f"## {version} ({day})", *blocks]) + "\n"


def build(changelog: Path, folder: Path, version: str, day: str) -> None:
    """Put the release at the head of the changelog and remove its fragments."""
    text = changelog.read_text(encoding="utf-8")
    if text.count(MARK) != 1:
        raise SystemExit(f"{changelog.name} must have the line {MARK.strip()!r} once")
    release = section(version, day, fragments(folder))
    changelog.write_text(text.replace(MARK, f"{MARK}\n{release}"), encoding="utf-8")
    for path in folder.glob("*.md"):
        path.unlink()


if __name__ == "__main__":
    if len(sys.argv) != 2 or not re.fullmatch(r"\d+\.\d+\.\d+", sys.argv[1]):
        raise SystemExit("usage: python changes/build.py VERSION, such as 1.2.0")
    build(HERE.parent / "CHANGELOG.md", HERE, sys.argv[1], date.today().isoformat())
