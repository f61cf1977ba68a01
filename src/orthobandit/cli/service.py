"""The commands of the service: `orthobandit serve`, `db` and `demo-traffic`."""

import argparse
import json
import os
from collections.abc import Callable
from typing import Any

from orthobandit._foundation.extras import optional_package
from orthobandit.cli._output import whole
from orthobandit.errors import ParameterError
from orthobandit.service.settings import BY_NAME, CONFIG, PORT, SETTINGS, read_settings

MEANT = {"where": "db", "address": "url"}  # arguments and the flags that give them
ACTIONS = ("upgrade", "backup", "restore", "check", "token")
ROLES = ("admin", "ask-tell", "read", "edge")
TOKEN = "ORTHOBANDIT_TOKEN"  # noqa: S105, the name of a variable
DEMO_URL = f"http://127.0.0.1:{PORT}"


def configure_serve(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `orthobandit serve`."""
    parser.description = (
        "Serve experiments over HTTP: ask which arm to show, tell the outcome, read the report. The first"
        " start creates the database and prints a token. Ctrl-C or SIGTERM shuts it down cleanly."
    )
    parser.epilog = (
        "example: orthobandit serve --db postgresql+psycopg://user@host/database. Every setting is an"
        f" environment variable as well ({SETTINGS[0].variable}, {SETTINGS[1].variable}, ...) and a key of"
        " the TOML file. A flag overrides the environment, which overrides the file."
    )
    types: dict[str, Callable[[str], Any]] = {"whole": whole, "number": float}
    for one in (CONFIG, *SETTINGS):
        words = one.words if one.default in (None, (), False) else f"{one.words} (default: {one.default})"
        if one.kind == "switch":
            # None, where it is not given: the environment or the file may say so.
            parser.add_argument(one.flag, action="store_true", default=None, help=words)
        else:
            parser.add_argument(
                one.flag,
                type=types.get(one.kind, str),
                choices=one.choices or None,
                metavar=one.metavar,
                help=words,
            )


def run_serve(options: argparse.Namespace) -> None:
    """Serve until told to end."""
    settings = read_settings(vars(options), os.environ)
    for package in ("sqlalchemy", "fastapi", "uvicorn", "httptools", "jinja2", "python_multipart"):
        optional_package(package, "service", "the service")
    optional_package("prometheus_client", "service", "the service")
    from orthobandit.service.serving import serve

    serve(
        settings.pop("db"),
        with_tokens=not settings.pop("no_auth"),
        say=lambda line: print(line, flush=True),
        **settings,
    )


def configure_db(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `orthobandit db`."""
    parser.description = (
        "upgrade: bring the tables up to this release (a server does so when it starts). backup FILE: copy"
        " everything while servers go on; FILE.db is a copy of a SQLite file, any other name a compressed"
        " file that any database can be restored from. restore FILE: make a database from a copy, never over"
        " another. check: recompute all draws and states; the exit code is 1 if anything is wrong. token:"
        " make a new token, for example when the last one is lost, and print it once."
    )
    parser.epilog = "example: orthobandit db backup monday.jsonl.gz --db postgresql+psycopg://user@host/db"
    parser.add_argument("action", choices=ACTIONS, help="what to do")
    parser.add_argument("file", nargs="?", metavar="FILE", help="the copy, for backup and restore")
    database = BY_NAME["db"]
    parser.add_argument(
        "--db",
        metavar="FILE|URL",
        default=os.environ.get(database.variable) or database.default,
        help=f"a SQLite file, or the URL of a database (default: the environment's {database.variable}, or"
        f" {database.default})",
    )
    parser.add_argument("--role", choices=ROLES, help="role of the token (default: admin)")
    parser.add_argument(
        "--experiments",
        metavar="KEY,...",
        help="experiments that the token is for, * for anything (default: all)",
    )
    parser.add_argument("--new", action="store_true", help="create the tables first if there are none yet")
    parser.add_argument(
        "--lasts", metavar="TIME", help="how long the token is valid, such as 90d (default: for ever)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run_db(options: argparse.Namespace) -> int:
    """Do it; return 1 if a check found something."""
    optional_package("sqlalchemy", "live", "a database of experiments")
    if (options.file is None) == (options.action in ("backup", "restore")):
        needs = "needs a FILE" if options.file is None else "takes no FILE"
        raise ParameterError(f"`orthobandit db {options.action}` {needs}; see `orthobandit db --help`")
    for name in ("role", "experiments", "lasts", "new"):
        if getattr(options, name) and options.action != "token":
            raise ParameterError(f"--{name} is for `orthobandit db token`, and not for `{options.action}`")
    if options.action == "token":
        _print_token(options)
        return 0
    from orthobandit.service import admin as backup

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
        counts = ", ".join(
            f"{rows[name]:,} {name.removesuffix('s') if rows[name] == 1 else name}"
            for name in ("experiments", "proposals", "rewards")
        )
        _print(options, rows, f"{done}: {counts}")
    return 0


def _print_token(options: argparse.Namespace) -> None:
    """Make a token; anybody who can write to the database may."""
    from orthobandit.service.admin.database import find_version, make_private, open_database
    from orthobandit.service.http.auth import Tokens
    from orthobandit.service.registry import Registry

    if options.new:
        make_private(options.db)
    else:
        with open_database(options.db) as database:
            find_version(database)  # a slip in the name must not make a database
    registry = Registry(options.db)
    try:
        experiments = None if options.experiments is None else options.experiments.split(",")
        token, text = Tokens(registry).make(
            options.role or "admin",
            "made by `orthobandit db token`",
            experiments=experiments,
            lasts=options.lasts,
        )
    finally:
        registry.close()
    shown = f"token of the role {token.role}, shown only now: {text}"
    _print(options, {**token._asdict(), "token": text}, shown)


def _print(options: argparse.Namespace, data: object, text: str) -> None:
    """Print `data` if JSON was asked for, and otherwise `text`."""
    print(json.dumps(data) if options.json else text)


def configure_demo_traffic(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `orthobandit demo-traffic`."""
    parser.description = (
        "Send simulated visitors of landing pages to a server. The sign-up rate drifts (a daily season"
        " compressed into a minute, and bursts), rewards arrive late, and some never arrive. Ends when a"
        " page is declared best."
    )
    parser.epilog = "example: orthobandit demo-traffic --serve"
    parser.add_argument("--url", help=f"the server (default: {DEMO_URL})")
    parser.add_argument("--token", help=f"token of the server (default: the environment's {TOKEN})")
    parser.add_argument("--key", default="landing-page", help="key of the experiment (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=250.0, help="visitors per second (default: 250)")
    parser.add_argument("--seconds", type=float, help="longest duration (default: until a page is declared)")
    parser.add_argument("--seed", type=whole, default=0, help="random seed of the visitors (default: 0)")
    parser.add_argument(
        "--serve", action="store_true", help="also start a server, on a temporary file, and keep it running"
    )
    parser.add_argument("--port", type=whole, help=f"port of that server (default: {PORT})")


def run_demo_traffic(options: argparse.Namespace) -> None:
    """Play visitors."""
    optional_package("httpx", "client", "made-up traffic")
    from orthobandit.service.demo import Visitors

    visitors = Visitors(options.rate, options.seed)
    if options.serve:
        for name in ("url", "token"):
            if getattr(options, name) is not None:
                raise ParameterError(
                    f"--{name} is for a server that runs already; --serve starts one of its own, on --port"
                )
        for package in ("sqlalchemy", "fastapi", "uvicorn"):
            optional_package(package, "service", "the service")
        from orthobandit.service.demo import show

        port = PORT if options.port is None else options.port
        show(visitors, port=port, seconds=options.seconds, say=_say)
        return
    if options.port is not None:
        raise ParameterError("--port is for --serve; the port of a server that runs already is part of --url")
    from orthobandit.service.client.client import Client
    from orthobandit.service.demo import Traffic

    with Client(options.url or DEMO_URL, options.token or os.environ.get(TOKEN)) as client:
        Traffic(client, visitors, key=options.key, say=_say).play(options.seconds)


def _say(line: str) -> None:
    print(line, flush=True)
