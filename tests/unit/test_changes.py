"""The changelog: fragments become the section of a release."""

import re
import runpy
from pathlib import Path

import pytest

CHANGES = Path(__file__).parents[2] / "changes"


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(CHANGES / "build.py"))


def test_the_fragments_of_this_release_are_well_formed(script):
    script["fragments"](CHANGES)


def test_a_release_is_put_before_the_older_ones(script, tmp_path):
    changelog, folder = tmp_path / "CHANGELOG.md", tmp_path / "changes"
    changelog.write_text(f"# Changelog\n\n{script['MARK']}\n## 0.1 (2020-01-01)\n")
    folder.mkdir()
    (folder / "012.fixed.md").write_text("Mend one.\n")
    (folder / "003-pages.added.md").write_text("Bring two.\n\nBring three.\n")
    (folder / "002.fixed.md").write_text("Mend four.")
    (folder / "004.breaking.md").write_text('`five` is gone: say "six."\n')
    script["build"](changelog, folder, "0.2", "2021-02-03")
    assert changelog.read_text() == (
        f"# Changelog\n\n{script['MARK']}\n## 0.2 (2021-02-03)\n\n"
        '### What breaks, and how to move\n\n- `five` is gone: say "six." (#4)\n\n'
        "### Added\n\n- Bring two. (#3)\n- Bring three. (#3)\n\n"
        "### Fixed\n\n- Mend four. (#2)\n- Mend one. (#12)\n\n"
        "## 0.1 (2020-01-01)\n"
    )
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["3.added.md", "003.improved.md", "notes.md"])
def test_a_fragment_with_another_name_is_refused(script, tmp_path, name):
    (tmp_path / name).write_text("Something.")
    form = r"NNN\.kind\.md or NNN-topic\.kind\.md"
    with pytest.raises(SystemExit, match=f"{name} must be called {form} with a kind of breaking, removed"):
        script["fragments"](tmp_path)


def test_an_entry_of_two_lines_is_refused(script, tmp_path):
    (tmp_path / "003.added.md").write_text("Something that goes on\nin the next line.\n")
    with pytest.raises(
        SystemExit, match="a line is an entry and ends with a full stop: 'Something that goes on'"
    ):
        script["fragments"](tmp_path)


def test_the_changelog_can_take_a_release_and_older_ones_are_short(script):
    text = (CHANGES.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    assert text.count(script["MARK"]) == 1
    versions = re.findall(r"^## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)\n", text, re.M)
    assert versions == sorted(versions, key=lambda one: [int(part) for part in one.split(".")], reverse=True)
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        if section.startswith(("0.2", "0.3")):
            assert "\n\n" not in section.partition("\n\n")[2].strip()  # one paragraph
