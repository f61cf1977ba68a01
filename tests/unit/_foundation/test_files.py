"""Files that are whole or absent, and packages that are missing."""

import os
import subprocess
import sys
import time

import pytest

from orthobandit._foundation.files import (
    _remove_leftovers,
    check_folder,
    read_sealed,
    whole_file,
    write_sealed,
    write_text,
)
from orthobandit.errors import FileFormatError, OutputError, ParameterError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_whole(tmp_path):
    path = tmp_path / "deep" / "x.txt"
    with whole_file(path) as unfinished:
        unfinished.write_text("new")
        assert not path.exists()
        assert unfinished.parent == path.parent
    assert path.read_text() == "new"
    assert names(path.parent) == ["x.txt"]


@pytest.mark.parametrize(
    ("error", "raised"), [(OSError(28, "No space left on device"), OutputError), (KeyError(3), KeyError)]
)
def test_a_failure_leaves_what_was_there(tmp_path, error, raised):
    path = tmp_path / "x.txt"
    path.write_text("old")

    def fail():
        with whole_file(path) as unfinished:
            unfinished.write_text("half")
            raise error

    with pytest.raises(raised):
        fail()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["x.txt"]


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    script = "\n".join(
        [
            "import os, signal, sys",
            "from orthobandit._foundation.files import whole_file",
            "with whole_file(sys.argv[1]) as unfinished:",
            "    unfinished.write_text('half')",
            "    os.kill(os.getpid(), signal.SIGKILL)",
        ]
    )
    path = tmp_path / "x.txt"
    subprocess.run([sys.executable, "-c", script, str(path)], check=False)  # noqa: S603
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".x.txt.")
    # It might still be written to, by somebody else.
    write_text(path, "new")
    assert left.exists()
    _remove_leftovers.cache_clear()
    hour_ago = time.time() - 3600
    os.utime(left, (hour_ago, hour_ago))
    others = tmp_path / ".profile"
    others.write_text("not ours")
    os.utime(others, (hour_ago, hour_ago))
    write_text(tmp_path / "y.txt", "new")
    assert names(tmp_path) == [".profile", "x.txt", "y.txt"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device here")  # noqa: PTH110
def test_a_device_is_written_to_and_not_replaced(tmp_path):
    write_text("/dev/null", "away")
    (tmp_path / "x.json").symlink_to("/dev/full")
    with pytest.raises(OutputError, match=r"x\.json cannot be written: No space left on device"):
        write_text(tmp_path / "x.json", "much")
    assert (tmp_path / "x.json").is_symlink()


def test_what_is_no_place_for_a_file_is_named(tmp_path):
    with pytest.raises(OutputError, match="cannot be written: Is a directory"):
        write_text(tmp_path, "text")
    with pytest.raises(ParameterError, match=r"out='/dev/null/x' cannot be created: Not a directory"):
        check_folder("out", "/dev/null/x")


def test_a_seal_notices_one_character(tmp_path):
    path, data = tmp_path / "x.json", {"b": [1, 2.5], "a": None}
    write_sealed(path, data)
    assert read_sealed(path) == data
    path.write_text(path.read_text().replace("2.5", "2.6"))
    with pytest.raises(FileFormatError, match=r"x\.json has changed since it was written"):
        read_sealed(path)
    with pytest.raises(FileNotFoundError):
        read_sealed(tmp_path / "y.json")
