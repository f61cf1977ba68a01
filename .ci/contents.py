"""Refuse a wheel or an sdist in which a file of the package is missing: `contents.py FILE…`."""

import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def wanted() -> set[str]:
    """Return every file of the package, templates and styles included."""
    files = (ROOT / "src" / "orthobandit").rglob("*")
    return {
        path.relative_to(ROOT / "src").as_posix()
        for path in files
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in {".pyc", ".nbi", ".nbc"}
    }


def held(path: Path) -> set[str]:
    """Return the files of an archive."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return set(archive.namelist())
    with tarfile.open(path) as archive:
        return {name.partition("/src/")[2] for name in archive.getnames()}


if __name__ == "__main__":
    for name in sys.argv[1:]:
        lacking = sorted(wanted() - held(Path(name)))
        if lacking:
            raise SystemExit(f"{Path(name).name} lacks {', '.join(lacking)}")
        print(f"{Path(name).name}: all {len(wanted())} files")
