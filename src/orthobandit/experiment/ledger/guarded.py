"""Intervals of a guardrail's metric, however many arms there are."""

from orthobandit._foundation.checks import check_fits
from orthobandit.arms import ArmSet
from orthobandit.estimate import Confidence, ContrastSequence, Plan, Tally
from orthobandit.estimate.follow.rounds import MOST_ARMS, GapIntervals

PAIR = 80  # bytes of an arm and a gap, as measured while rounds are added


def check_guards_fit(arms: ArmSet) -> None:
    """Raise an error if guardrails on these arms would need more memory than there is."""
    check_fits(f"a guardrail on {len(arms):,} arms", PAIR * len(arms) ** 2, "take fewer arms or no guardrail")


class GuardedIntervals(GapIntervals):
    """Intervals that guardrails judge by.

    Those of other metrics are left out with more than 200 arms, because they take a number for each pair of
    an arm and a gap. Guardrails need theirs all the same: without them no arm is ever retired, and none is
    cleared, so that none could be declared.
    """

    def __init__(
        self, confidence: Confidence, arms: ArmSet, reference: int, delta: float, *, follows: bool = True
    ) -> None:
        super().__init__(confidence, arms, reference, delta, follows=follows)
        self._looked: tuple[list[ContrastSequence], list[tuple[int, int]], list[ContrastSequence]] | None = (
            None
        )
        if follows and len(arms) > MOST_ARMS:
            check_guards_fit(arms)
            self._begin([arm for arm in range(len(arms)) if arm != reference])

    def _with(self, taken: list[tuple[Plan, Tally]]) -> list[ContrastSequence]:
        """Return the sequences with pending rounds; the last answer serves until there are more of them.

        A report looks several times, and with very many arms each look takes long.
        """
        pending = [(int(plan.number), int(plan.rounds)) for plan, _ in taken]
        if self._looked is None or self._looked[0] is not self._sequences or self._looked[1] != pending:
            self._looked = (self._sequences, pending, super()._with(taken))
        return self._looked[2]

    def extend(self, arms: ArmSet, first_plan: int = 0) -> None:
        """Add arms; the sequences so far go on, and new arms have one of their own."""
        before = len(self.arms)
        super().extend(arms, first_plan)
        if len(arms) > MOST_ARMS:
            self._begin(list(range(before, len(arms))), first_plan)
