"""Certificates: the document from which a claim can be recomputed, for decisions and logs alike.

``chain`` keeps the entries of a log with their hashes, ``document`` makes, writes and reads a certificate.
:mod:`orthobandit.experiment` and :mod:`orthobandit.logs` decide what goes into the entries, and
:mod:`orthobandit.verify` what follows from them.
"""

from orthobandit.estimate.certificate.chain import Chain, ChainHead
from orthobandit.estimate.certificate.document import Certificate, describe_mode, finite

__all__ = ["Certificate", "Chain", "ChainHead", "describe_mode", "finite"]
