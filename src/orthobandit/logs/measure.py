"""What is followed through the buckets of a log."""

from dataclasses import dataclass

from orthobandit.estimate import Confidence


@dataclass(frozen=True)
class Measure:
    """What is followed.

    Attributes
    ----------
    column : int
        Of the metric, or of the numerator of a ratio.
    denominator : int or None
        Of a ratio; what is followed is the numerator less `ratio` times it.
    covariates : tuple of int
    confidence : Confidence
        In units of the column as kept, less its offset.
    delta : float
        For all gaps of the metric to the reference arm together.
    baseline : str
    reference : int
    ratio : float
    is_recorded : bool
        Whether to keep what was counted, for a certificate.
    is_two_valued : bool
        Whether all values of the log are 0 or 1, for intervals at one look.
    is_sequential : bool
        Whether the log may be looked at again when it has grown. Then a single bucket is the pilot of what
        comes, and not a log to be looked at as a whole.
    """

    column: int
    denominator: int | None
    covariates: tuple[int, ...]
    confidence: Confidence
    delta: float
    baseline: str
    reference: int
    ratio: float = 0.0
    is_recorded: bool = False
    is_two_valued: bool = False
    is_sequential: bool = False
