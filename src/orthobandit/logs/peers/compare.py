"""What other methods say of the same log: estimates, intervals, and what each of them takes for granted."""

from orthobandit.estimate.follow.cells import Cells
from orthobandit.logs.peers.rivals import Found, Pair, apart, mixture, naive, stratified, together, weighted
from orthobandit.logs.peers.strata import Strata
from orthobandit.logs.question import Question
from orthobandit.logs.results import Rival

NAIVE = "difference in means (Welch)"
STRATIFIED = "stratified by bucket and plan"
WEIGHTED = "inverse probability weighting (Hájek)"
APART = "adaptively weighted AIPW, arm by arm"
TOGETHER = "adaptively weighted AIPW, of the gap"
MIXTURE = "mixture adaptive design (MAD)"

ASSUMES = {
    NAIVE: (
        "one look, rows alike at all times. Once probabilities and the baseline both move, arms are compared"
        " at different times, and the interval closes around a wrong number."
    ),
    STRATIFIED: (
        "one look, a baseline that stands still within a bucket, and many rows of both arms in it. A moving"
        " baseline is left out; strata without both arms are lost, and the interval is too narrow for a"
        " second look or for arms that are rarely drawn."
    ),
    WEIGHTED: (
        "one look, probabilities that stay away from 0. Arms are compared over the same times, but the"
        " baseline adds to the noise, more so the smaller a probability was; where probabilities follow the"
        " rewards, the normal law of its interval fails."
    ),
    APART: (
        "one look, means that do not move. Probabilities may follow the rewards (Hadad et al. 2021, √p as"
        " weights), but each arm is weighted by its own probabilities: under a moving baseline arms are"
        " averaged over different times."
    ),
    TOGETHER: (
        "one look, gaps that do not move, many rows. Scores of the gap have one weight, 1/√(1/p + 1/p of the"
        " reference) (Hadad et al. 2021): a moving baseline leaves no bias but adds to the noise, for"
        " forecasts are each arm's past mean."
    ),
    MIXTURE: (
        "any number of looks, many rows, probabilities that fall slowly if at all (Liang & Bojinov 2023; the"
        " probabilities of the log stand for its mixture). Rewards count from 0 and not from a forecast:"
        " their level, moving or not, is all noise, and the interval is wide."
    ),
}


def compare(cells: Cells, question: Question, metric: int = 0) -> tuple[Rival, ...]:
    """Return what six other methods say of the gap of every arm over the reference arm.

    All intervals have the same joint level as ours: δ is divided by the number of gaps.

    - Difference in means, with Welch's interval.
    - Differences within bucket and plan, weighted by n·n′/(n + n′), with the variance of each arm around
      the means of its strata.
    - Hájek's inverse probability weighting: each arm's mean with weights 1/p, linearised variance.
    - Adaptively weighted AIPW (Hadad, Hirshberg, Zhan, Wager & Athey 2021) with the arm's mean over earlier
      buckets as plug-in: the difference of two arms with weights √p each (constant allocation), and scores of
      the gap with weights that stabilise their variance; both studentised. The first bucket has no plug-in
      and is left out, unless it is the only one.
    - Mixture adaptive design (Liang & Bojinov 2023): inverse-probability scores of the gap with their
      asymptotic confidence sequence, made tightest at the end of the log.

    Parameters
    ----------
    cells : Cells
    question : Question
        Its `reference` and `delta` are used.
    metric : int
        Which column of the cells.

    Returns
    -------
    tuple of Rival
        All methods of an arm, then of the next; an estimate is None where the method has none.
    """
    strata = Strata.of(cells, metric)
    labels = cells.arms.labels
    reference = 0 if question.reference is None else cells.arms.index(question.reference)
    others = [arm for arm in range(len(labels)) if arm != reference]
    # The same joint level as ours: otherwise widths could not be compared.
    alpha = question.delta / max(len(others), 1)
    found = []
    for arm in others:
        pair = Pair.of(strata, arm, reference)
        results = {
            NAIVE: naive(pair, alpha),
            STRATIFIED: stratified(pair, alpha),
            WEIGHTED: weighted(pair, alpha),
            APART: apart(pair, alpha),
            TOGETHER: together(pair, alpha),
            MIXTURE: mixture(pair, alpha, strata.offset),
        }
        found += [_rival(name, labels[arm], labels[reference], result) for name, result in results.items()]
    return tuple(found)


def _rival(method: str, arm: str, over: str, found: Found | None) -> Rival:
    if found is None:
        return Rival(method, arm, over, None, (None, None), ASSUMES[method])
    estimate, half = found
    return Rival(method, arm, over, estimate, (estimate - half, estimate + half), ASSUMES[method])
