"""The service as a process: where it listens, what it prints at the start, and how it ends."""

import asyncio
import errno
import gc
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from ipaddress import ip_network
from pathlib import Path

import uvicorn

from orthobandit._foundation.checks import check_positive, check_whole
from orthobandit.errors import Argument, ParameterError
from orthobandit.experiment.store.sql.connections import address, file_of
from orthobandit.service.admin.database import make_private
from orthobandit.service.app import create_app
from orthobandit.service.http.auth import Tokens
from orthobandit.service.http.connections import Guard
from orthobandit.service.http.limits import (
    MAX_BODY_BYTES,
    MAX_REQUESTS,
    RATE,
    SPARE_CONNECTIONS,
    ConnectionLimits,
)
from orthobandit.service.http.observability import check_packages, configure_logging, send_telemetry
from orthobandit.service.registry import Registry
from orthobandit.service.settings import PORT
from orthobandit.service.warm_up import Preparing

LIMITS = ConnectionLimits()
LOOPBACK = ("127.0.0.1", "::1", "localhost")
BACKLOG = 2048  # connections that may wait
FAILED = 3  # exit code of a server that could not start
WARM_UP_LOOK_SECONDS = 0.2  # seconds between two looks at whether a server that warms up was told to stop
SHUTDOWN_SECONDS = 10  # seconds that open requests have to finish after the server was told to stop
OTHER_FILES = 200  # that a server has open besides connections: the database, the log, packages
FIRST_COLLECTION_ALLOCATIONS = 10_000  # net allocations before the youngest generation is collected


def serve(
    where: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    with_tokens: bool = True,
    tls_certificate: str | Path | None = None,
    tls_key: str | Path | None = None,
    proxies: Sequence[str] = (),
    rate: float = RATE,
    max_body: int = MAX_BODY_BYTES,
    max_connections: int = LIMITS.most,
    max_requests: int = MAX_REQUESTS,
    header_timeout: float = LIMITS.head_seconds,
    body_timeout: float = LIMITS.body_seconds,
    open_metrics: bool = False,
    telemetry: bool = False,
    webhooks_anywhere: bool = False,
    log: str = "none",
    say: Callable[[str], None] = print,
) -> None:
    """Serve the experiments of a database until the process is told to end (SIGTERM, Ctrl-C).

    Before it ends, open requests are answered and states are saved.

    Parameters
    ----------
    where : str or Path
        A SQLite file, or the URL of a database; made if there is none.
    host, port : str, int
        Where to listen.
    with_tokens : bool
        Whether callers need a token. The first start makes one for an admin, and prints it once.
    tls_certificate, tls_key : str or Path, optional
        Files in PEM; with both, the server speaks TLS itself.
    proxies : sequence of str
        Addresses and networks of proxies whose ``X-Forwarded-For`` and ``X-Forwarded-Proto`` are believed.
    rate, open_metrics, webhooks_anywhere
        As for :func:`~orthobandit.service.create_app`.
    max_body : int
        Largest body of a request, in bytes.
    max_connections, max_requests : int
        Connections, and requests in progress, at the same time.
    header_timeout, body_timeout : float
        Seconds in which headers must come, and a body that is slower than 64 KiB a second.
    telemetry : bool
        Whether to send traces and metrics by OpenTelemetry.
    log : {"json", "text", "none"}
        What to write to stderr: a line for each request, as JSON or as text, or errors only.
    say : function
        Prints a line for whoever started the server.

    Raises
    ------
    ParameterError
        If other machines could reach a server without tokens, or the port is taken.
    """
    check_whole("port", port, least=0, most=65535)
    for proxy in proxies:
        _check_network(proxy)
    scheme = "http" if tls_certificate is None and tls_key is None else "https"
    if scheme == "https":
        _check_tls(tls_certificate, tls_key)
    if host not in LOOPBACK and not with_tokens:
        raise ParameterError(
            Argument("host", host),
            " lets other machines in, and without tokens everybody is an admin; leave"
            " --no-auth out, or listen on 127.0.0.1",
        )
    # Everything is checked before there is a token, which is shown only once.
    check_whole("max_body", max_body, least=1)
    check_whole("max_requests", max_requests, least=1)
    check_whole("max_connections", max_connections, least=1)
    limits = LIMITS._replace(
        most=_fit_files(max_connections),
        head_seconds=check_positive("header_timeout", header_timeout),
        body_seconds=check_positive("body_timeout", body_timeout),
    )
    if rate:
        check_positive("rate", rate)
    if telemetry:
        check_packages()
    with _listen(host, port) as listener:
        make_private(where)
        first = _make_first_token(where, host) if with_tokens else None
        shown = f"{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        words = [f"orthobandit serves {_hide_password(where)} at {scheme}://{shown}"]
        if first is not None:
            words.append(f"token of an admin, shown only now: {first}")
        # Browsers keep what stands behind # to themselves: the token gets into no log.
        login = "" if first is None else f"/login#{first}"
        words.append(f"dashboard: {scheme}://{shown}/dashboard{login}")
        # A page of another site could otherwise reach this machine through a name of its own.
        hosts = None if with_tokens else {*LOOPBACK, "[::1]"}
        app = create_app(
            where,
            with_tokens=with_tokens,
            hosts=hosts,
            body_limit=max_body,
            rate=rate,
            most_requests=max_requests,
            open_metrics=open_metrics,
            webhooks_anywhere=webhooks_anywhere,
        )
        configure_logging(log)
        app.state.preparing.say = say
        if telemetry:
            app.state.at_end.append(send_telemetry(app))
        guard = Guard(limits)
        app.state.metrics.refused = guard.refused
        config = uvicorn.Config(
            app,
            http=guard.make_protocol,  # type: ignore[arg-type]
            log_config=None,
            access_log=False,
            ws="none",
            ssl_certfile=tls_certificate,
            ssl_keyfile=tls_key,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=list(proxies),
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        server = _Server(config, app.state.preparing, partial(_say_all, say, words))
        with suppress(KeyboardInterrupt):  # raised again once the server has ended
            server.run(sockets=[listener])
    if not server.started or app.state.preparing.has_failed:
        sys.exit(FAILED)  # it has said why


class _Server(uvicorn.Server):
    """A server that says when it is ready."""

    def __init__(self, config: uvicorn.Config, preparing: Preparing, say: Callable[[], None]) -> None:
        super().__init__(config)
        self._preparing = preparing
        self._say = say

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, wait for the warm-up, and print the address once requests are answered."""
        await super().startup(sockets)
        while self.started and not self.should_exit and not self._preparing.is_done:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._preparing.wait(), WARM_UP_LOOK_SECONDS)
        if self._preparing.has_failed:
            self.should_exit = True
        elif self._preparing.is_done:
            spare_collector()
            self._say()


def _check_network(text: str) -> None:
    try:
        ip_network(text)
    except ValueError as error:
        raise ParameterError(
            Argument("proxies", text),
            f" must be an address or a network, such as 127.0.0.1 or 10.0.0.0/8: {error}",
        ) from None


def _check_tls(certificate: str | Path | None, key: str | Path | None) -> None:
    """Raise :class:`ParameterError` if these files cannot be used for TLS."""
    if certificate is None or key is None:
        given = "tls_certificate" if key is None else "tls_key"
        value = certificate or key
        raise ParameterError(
            Argument(given, str(value)), " needs the other of --tls-certificate and --tls-key"
        )
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
    except OSError as error:  # of which those of TLS are a kind
        raise ParameterError(
            Argument("tls_certificate", str(certificate)),
            f" cannot be used with the key {str(key)!r}: {error}; both"
            " must be PEM files that the server may read, and belong together",
        ) from None


def _fit_files(most: int) -> int:
    """Raise the limit of open files to fit so many connections; return how many fit.

    A process without free files cannot even refuse connections.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return most
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + SPARE_CONNECTIONS + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return most
    return max(1, min(most, soft - SPARE_CONNECTIONS - OTHER_FILES))


def _say_all(say: Callable[[str], None], lines: list[str]) -> None:
    for line in lines:
        say(line)


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; connections wait in its queue until the server answers."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            remedy = "another program listens there: end it, or choose another port"
        else:
            remedy = f"nothing can listen there: {error.strerror or error}"
        raise ParameterError(Argument("port", port), f" of {host}: {remedy}") from None


def _make_first_token(where: str | Path, host: str) -> str | None:
    """Make and return the first token, only on loopback: whoever started the server reads it."""
    registry = Registry(where)
    try:
        tokens = Tokens(registry)
        if host not in LOOPBACK and not tokens.all():
            raise ParameterError(
                Argument("host", host),
                " lets other machines in, and there is no token yet; start on 127.0.0.1 first,"
                " which makes one",
            )
        return tokens.first()
    finally:
        registry.close()


def _hide_password(where: str | Path) -> str:
    """Return a file or URL without its password."""
    url = address(where)
    return str(file_of(url) or url)


def spare_collector() -> None:
    """Leave everything allocated so far out of later garbage collections.

    Packages and routes are half a million objects that live as long as the process. A full collection walks
    through all of them. That takes 0.1 s in which nobody is answered, about once a second under load.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(FIRST_COLLECTION_ALLOCATIONS, *gc.get_threshold()[1:])
