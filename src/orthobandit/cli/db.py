"""`orthobandit db`: upgrade, back up, restore and check the database of the service."""

import argparse
import json

from orthobandit._files import optional_package
from orthobandit.errors import ParameterError

MEANT = {"where": "db"}
ACTIONS = ("upgrade", "backup", "restore", "check")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "upgrade: bring the tables to this release (a server does it as well). backup FILE: copy everything,"
        " while servers go on; FILE.db is a copy of a SQLite file, any other name a compressed file that"
        " any database can be made of. restore FILE: make a database of a copy, never over another. check:"
        " compute all draws and states again; the exit code is 1 if anything is not as it should be."
    )
    parser.epilog = "example: orthobandit db backup monday.jsonl.gz --db postgresql+psycopg://user@host/db"
    parser.add_argument("action", choices=ACTIONS, help="what to do")
    parser.add_argument("file", nargs="?", metavar="FILE", help="the copy, for backup and restore")
    parser.add_argument(
        "--db",
        metavar="FILE|URL",
        default="orthobandit.db",
        help="a SQLite file, or the URL of a database (default: orthobandit.db)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: argparse.Namespace) -> int:
    """Do it; return 1 if a check found something."""
    optional_package("sqlalchemy", "live", "a database of experiments")
    if (options.file is None) == (options.action in ("backup", "restore")):
        needs = "needs a FILE" if options.file is None else "takes no FILE"
        raise ParameterError(f"`orthobandit db {options.action}` {needs}; see `orthobandit db --help`")
    from orthobandit.service import backup

    if options.action == "upgrade":
        before, after = backup.upgrade(options.db)
        changed = f"brought from {before} to {after}" if before != after else f"of version {after} already"
        _print(options, {"before": before, "after": after}, f"the tables were {changed}")
    elif options.action == "check":
        found = backup.check(options.db, say=(lambda _: None) if options.json else print)
        told = "\n".join(one.what for one in found if one.experiment is None)
        verdict = f"{len(found)} finding{'s' * (len(found) > 1)}" if found else "nothing is wrong"
        _print(options, [one._asdict() for one in found], f"{told}\n{verdict}" if told else verdict)
        return 1 if found else 0
    else:
        is_backup = options.action == "backup"
        rows = (
            backup.back_up(options.db, options.file)
            if is_backup
            else backup.restore(options.file, options.db)
        )
        done = f"{'wrote' if is_backup else 'restored'} {options.file}"
        counts = ", ".join(f"{rows[name]} {name}" for name in ("experiments", "proposals", "rewards"))
        _print(options, rows, f"{done}: {counts}")
    return 0


def _print(options: argparse.Namespace, data: object, text: str) -> None:
    print(json.dumps(data) if options.json else text)
