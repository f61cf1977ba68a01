"""Whether something fails no more often than promised, judged while the runs come in."""

from dataclasses import dataclass
from math import log

from scipy.stats import binom


@dataclass(frozen=True)
class Promise:
    """At most a share `rate` of runs fail.

    The likelihood ratio of twice the odds against the promised ones is a supermartingale while the promise
    is kept, whatever the true rate, so that it ever exceeds 2 / `false_alarm` with half that probability
    (Ville's inequality); its inverse, if the odds are twice as high or higher, ever exceeds 1 / `missed`
    with probability `missed` at most. Runs are made until one of both has happened; what is still open
    after the last run is judged by the exact binomial test with the other half of `false_alarm`. So clear
    cases need a fraction of the runs, and the stated rates are those of the whole procedure.
    """

    rate: float
    false_alarm: float = 1e-9
    missed: float = 1e-3

    def is_kept(self, failures, most, step=50):
        """Return whether it is kept, and a sentence; `failures(first, runs)` plays and counts."""
        failed = done = 0
        while done < most:
            runs = min(step, most - done)
            failed += failures(done, runs)
            done += runs
            evidence = self.evidence(failed, done)
            if evidence >= log(2.0 / self.false_alarm):
                return False, f"{failed} of {done} runs failed, {self.rate:g} promised"
            if evidence <= log(self.missed):
                break
        else:
            return failed <= binom.isf(self.false_alarm / 2.0, done, self.rate), f"{failed} of {done} failed"
        return True, f"{failed} of {done} runs failed"

    def evidence(self, failed, runs):
        """Return the log-likelihood ratio of twice the odds against the promised ones."""
        twice = 2.0 * self.rate / (1.0 + self.rate)
        kept = log((1.0 - twice) / (1.0 - self.rate))
        return failed * log(twice / self.rate) + (runs - failed) * kept


def assert_kept(rate, failures, most, **settings):
    """Fail with a sentence if runs fail more often than promised."""
    is_kept, said = Promise(rate, **settings).is_kept(failures, most)
    assert is_kept, said
