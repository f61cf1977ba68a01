"""BOSE: filter the arms after every round, and explore the rest with a distribution that hides the shift."""

from dataclasses import dataclass
from typing import ClassVar

from orthobandit._checks import check_choice
from orthobandit._compile import compiled
from orthobandit._types import Array
from orthobandit.arms import ArmSet
from orthobandit.design.ball import TOLERANCE, ball_into
from orthobandit.policy._bose_filter import (
    FilterMemory,
    FilterPolicy,
    FilterSettings,
    list_survivors,
    settle_on,
)
from orthobandit.policy.every_round import PlanStep


@compiled
def plan_ball(settings: FilterSettings, memory: FilterMemory, i: int, probabilities: Array) -> int:
    """Draw survivors from BOSE's distribution, or uniformly."""
    among, are_alike = list_survivors(settings, memory, i)
    if are_alike:
        return settle_on(among[0], probabilities)
    if not settings.is_exact:
        probabilities[:] = 0.0
        probabilities[among] = 1.0 / among.size
        return 1
    residual = ball_into(memory.inner[i], among, probabilities)
    return 1 if residual <= TOLERANCE else -1


@dataclass(frozen=True)
class BOSE(FilterPolicy):
    """Bandit orthogonalised semiparametric estimation (Krishnamurthy, Wu & Syrgkanis 2018, Algorithm 1).

    Every round: θ̂ = V⁻¹Σ x̃r with V = λI + Σ x̃x̃ᵀ; drop arm i if some j has θ̂ᵀ(x_j − x_i) > γ‖x_j − x_i‖_{V⁻¹}.
    A sole survivor is played and nothing is updated. Otherwise draw from a distribution p on the survivors
    with ‖x_a − μ_p‖²_{V⁻¹} ≤ tr(V⁻¹Σ_p) for each of them. Such p maximise tr(V⁻¹Σ_p): they are the dual
    solution of the smallest ball around {V^{−1/2}x_a}, found exactly
    (:func:`~orthobandit.design.ball.enclosing_ball`; residual ≤ 1e-8 or
    :class:`~orthobandit.errors.DesignError`). Two survivors get ½ each.

    Regret Õ(d√T) for oblivious and adaptive shifts with the theoretical constants. Departs: d is the affine
    dimension r; arms do not change over time, so a sole survivor is declared and played for ever; survivors
    with equal features are equally good and the first is declared.

    Parameters
    ----------
    horizon : int
        T of the constants. Playing on after it is allowed.
    delta : float
        Failure probability δ.
    constants : {"tuned", "theory"}
        λ = 4r·log(9T) + 8·log(4T/δ) in both. γ = √λ + √(27r·log(1+2T/r) + 54·log(4T/δ)) in theory, and
        c(√λ + √(r·log(T/r) + log(T/δ))) tuned.
    scale : float
        c of the tuned γ.
    ridge : float, optional
        Another λ for the tuned constants.
    distribution : {"exact", "uniform"}
        "uniform" plays all survivors alike, as the authors' public code does; it lacks their guarantee.

    Examples
    --------
    >>> policy = BOSE(horizon=1000)
    >>> state = policy.start(ArmSet([[0.0, 0.0], [2.0, 0.0], [1.0, 0.5]]))
    >>> policy.plan(state).probabilities.tolist()
    [0.5, 0.5, 0.0]
    """

    distribution: str = "exact"

    plan_into: ClassVar[PlanStep] = staticmethod(plan_ball)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("distribution", self.distribution, ("exact", "uniform"))

    def settings(self, arms: ArmSet) -> FilterSettings:
        """Return what the compiled steps read."""
        return super().settings(arms)._replace(is_exact=self.distribution == "exact")
