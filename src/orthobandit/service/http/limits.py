"""Every limit of the service: connections, headers, rates, bodies, and the values in them.

They are enforced by :mod:`orthobandit.service.http.connections`, :mod:`~orthobandit.service.http.admission`
(rates), :mod:`~orthobandit.service.http.request_checks` (bodies) and the models of the routes. This module
imports only the standard library: `orthobandit serve --help` shows limits without a server's packages.
"""

from typing import NamedTuple

# Connections and headers. See also ConnectionLimits.
MAX_HEADERS = 200
MAX_PIPELINED = 16  # requests that a connection may send before the answer to the first
SPARE_CONNECTIONS = 256  # beyond the limit, that may wait for their refusal; more are just closed
BODY_BYTES_PER_SECOND = 2**16  # a body that comes faster is never too slow
# Rates.
RATE = 10_000.0  # requests a second for each token, or for each address without tokens
STRANGER_RATE = 100.0  # requests a second for each address that sends no known token
WRONG_TOKEN_RATE = 1 / 6  # wrong tokens a second that an address may send
BURST_SECONDS = 2.0  # seconds' worth of requests that may come at once
WRONG_TOKEN_BURST = 20  # wrong tokens that may come at once
MAX_REQUESTS = 1_000  # that are in progress at the same time
MAX_REMEMBERED_CALLERS = 10_000  # tokens and addresses that are remembered
# Bodies, in bytes.
MAX_BODY_BYTES = 8 * 2**20
STRANGER_BODY_BYTES = 2**14  # of a caller without a known token: a form with a token in it
SMALL_BODY_BYTES = 2**16  # a body that needs no room of its own
LARGE_BODIES_BYTES = 4 * MAX_BODY_BYTES  # larger bodies that are kept at the same time
# Values in bodies and paths.
MAX_ARMS = 10_000  # of an experiment
MAX_PLAIN_ARMS = 2_000  # of labels alone: each then has as many features as there are arms
MAX_FEATURES = 1_000  # of an arm
MAX_ASKED = 10_000  # proposals of one request
MAX_TOLD = 100_000  # rewards of one request
MAX_ID = 2**63 - 1  # number of a proposal or a plan
MAX_NAME_CHARACTERS = 200  # of a unit, a label, a metric, a key


class ConnectionLimits(NamedTuple):
    """Limits of connections.

    Parameters
    ----------
    most : int
        Connections at the same time.
    head_bytes : int
        Longest request line and headers together.
    head_seconds, body_seconds : float
        Longest time for headers, and for a body. A body has a second more for every 64 KiB that have come.
    stall_seconds : float
        Longest time in which a caller may read nothing of its answer.
    """

    most: int = 2_000
    head_bytes: int = 32 * 2**10
    head_seconds: float = 10.0
    body_seconds: float = 15.0
    stall_seconds: float = 15.0
