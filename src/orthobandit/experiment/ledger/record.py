"""The record of an experiment, from which its claims are recomputed: the entries of its certificate.

:class:`Record` is that of an experiment that looks for one best arm: plans, rounds and changes of arms.
:class:`RuleRecord` is that of a personalised experiment: visitors and rewards. A visitor is recorded when the
arm is drawn, with all that was fixed before: probabilities, estimated values, forecast. The reward is
recorded when it settles, in the order of draws. So a head that is published in between commits to the draw
before the reward is known.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from orthobandit._foundation.json_arrays import json_text
from orthobandit._foundation.types import Array
from orthobandit.arms import ArmSet
from orthobandit.estimate import Plan, Tally
from orthobandit.estimate.certificate import Chain, ChainHead, describe_mode
from orthobandit.policy.anytime import AnytimeElimination, AnytimeState
from orthobandit.policy.anytime.plans import wide_plan
from orthobandit.policy.contextual.personalised import Personalised
from orthobandit.policy.contextual.rule_text import WrittenRule
from orthobandit.verify import ALL_PAIRS, LEADERS, STAGES


def commitment_of(
    policy: AnytimeElimination, arms: ArmSet, key: str = "", settings: Any = None
) -> dict[str, Any]:
    """Return the commitment made before the first draw: settings of the claims, and two hashes.

    Parameters
    ----------
    policy : AnytimeElimination
    arms : ArmSet
    key : str
        The key of the draws, of which only the hash is recorded; empty if there is none.
    settings : plain values
        All settings of the experiment but the key; only their hash is recorded.
    """
    return {
        "kind": "decision",
        "evidence": ALL_PAIRS if policy.follows_all_pairs(arms) else LEADERS,
        "labels": list(arms.labels),
        "features": arms.features.tolist(),
        "confidence": describe_mode(policy.confidence),
        "delta": policy.delta,
        "epsilon": policy.epsilon,
        "goal": policy.goal,
        "growth": policy.growth,
        "pilot": policy.pilot,
        "expect": policy.expect,
        "key": hash_text(f"key of draws\n{key}") if key else None,
        "experiment": None if settings is None else hash_values(settings),
    }


def hash_values(settings: Any) -> str:
    """Return the hash of plain values, written as :func:`~orthobandit.verify.canonical` writes them."""
    # Tables of many arms are written in pieces.
    return hash_text(json_text(settings, sort_keys=True, separators=(",", ":")))


def hash_text(text: str) -> str:
    """Return a hash of 40 digits."""
    return blake2b(text.encode(), digest_size=20).hexdigest()


class Record:
    """Everything that an :class:`~orthobandit.AnytimeElimination` was fed, as entries of a :class:`Chain`.

    Call :meth:`plan` for every state whose plan is new, before its first draw; :meth:`rounds` for what is
    fed; :meth:`retire`, :meth:`extend` and :meth:`clear` before the plan that follows the change.

    Parameters
    ----------
    chain : Chain
        With what :func:`commitment_of` returned, and no entry.

    Examples
    --------
    >>> policy, arms = AnytimeElimination(rewards=(0, 1)), ArmSet.one_hot(3)
    >>> record = Record(Chain(commitment_of(policy, arms)))
    >>> record.plan(policy, policy.start(arms)), record.head[:2]
    (1, '1:')
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.current = 0  # number of the newest distribution
        self._probabilities: list[float] = []  # of the newest plan
        self._active: list[int] = []  # survivors when it was made

    @property
    def head(self) -> str:
        """Number of entries and hash over all of them: what to publish while the experiment runs."""
        return self.chain.head

    def plan(self, policy: AnytimeElimination, state: AnytimeState, drawn: Array | None = None) -> int:
        """Record the plan of a state and the policy's findings at that time; return the plan's number.

        Parameters
        ----------
        policy : AnytimeElimination
        state : AnytimeState
        drawn : (K,) array, optional
            Probabilities that arms are drawn with, if they differ from the plan's because a share of the
            reference arm is mixed in. Rounds of such a plan are fed to the policy's method ``late``.
        """
        plan = policy.plan(state)
        self.current += 1
        probabilities = plan.probabilities.tolist()
        active = np.flatnonzero(state.active).tolist()
        declared = int(state.declared)
        leader = int(state.leader)
        others = state.active & (np.arange(len(state.active)) != leader)
        self.chain.add(
            {
                "entry": "plan",
                "distribution": self.current,
                "plan": int(plan.number),
                "stage": STAGES[int(state.stage)],
                "length": None if declared >= 0 else int(state.length),
                # What is the same as in the plan before is left out.
                "probabilities": None if probabilities == self._probabilities else probabilities,
                "drawn": None if drawn is None else drawn.tolist(),
                "active": None if active == self._active else active,
                "values": state.values.tolist(),
                "leader": leader,
                "second": int(np.argmax(np.where(others, state.values, -np.inf))),
                "declared": declared if declared >= 0 else None,
            }
        )
        self._probabilities = probabilities
        self._active = active
        return self.current

    def restrict(self, plan: Plan) -> int:
        """Record the plan in force, restricted to arms that are available; return its number."""
        self.current += 1
        self.chain.add(
            {
                "entry": "distribution",
                "distribution": self.current,
                "plan": int(plan.number),
                "probabilities": plan.probabilities.tolist(),
            }
        )
        return self.current

    def rounds(self, distribution: int, tally: Tally) -> None:
        """Record rounds under a distribution, by its number, as fed to the policy."""
        if int(tally.rounds):
            self.chain.add({"entry": "rounds", "distribution": distribution, **tally.to_json()})

    def retire(self, arm: int) -> None:
        """Record that an arm is retired."""
        self.chain.add({"entry": "retire", "arm": arm})

    def clear(self, arm: int) -> None:
        """Record that guardrails have cleared the declared arm, which was held back until now."""
        self.chain.add({"entry": "clear", "arm": arm})

    def extend(self, arms: ArmSet) -> None:
        """Record all arms, old and new, and the weights that centre their values."""
        self.chain.add(
            {
                "entry": "extend",
                "labels": list(arms.labels),
                "features": arms.features.tolist(),
                "level": wide_plan(arms).tolist(),
            }
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            **self.chain.to_json(),
            "current": self.current,
            "probabilities": self._probabilities,
            "active": self._active,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Record":
        """Invert :meth:`to_json`."""
        out = cls(Chain.from_json(data))
        out.current = int(data["current"])
        out._probabilities = list(data["probabilities"])
        out._active = list(data["active"])
        return out


def rule_columns(policy: Personalised, arms: ArmSet) -> tuple[str, ...]:
    """Return the columns of the context that rules look at, in their order."""
    looked_at = {
        condition.column
        for rule in policy.named_rules(arms).values()
        if isinstance(rule, WrittenRule)
        for _, conditions in rule.cases
        for condition in conditions
    }
    return tuple(name for name in policy.context if name in looked_at)


def rule_commitment(
    policy: Personalised, arms: ArmSet, key: str, settings: Any, *, silence: str, holdout: float
) -> dict[str, Any]:
    """Return the commitment made before the first draw: settings of the claims, and two hashes.

    Parameters
    ----------
    policy : Personalised
    arms : ArmSet
    key : str
        The key of the draws, of which only the hash is recorded.
    settings : plain values
        All settings of the experiment but the key; only their hash is recorded.
    silence : {"zero", "missing"}
        How a visitor without a reward counts.
    holdout : float
        Share of visitors who are always shown the reference arm, and judge no rule.
    """
    written: Sequence[tuple[str, str]] = tuple(policy.rules)  # type: ignore[arg-type]
    return {
        "kind": "rules",
        "labels": list(arms.labels),
        "columns": list(rule_columns(policy, arms)),
        "written": [[name, text] for name, text in written],
        "confidence": describe_mode(policy.confidence),
        "delta": policy.rules_delta,
        "explore": policy.explore,
        "silence": silence,
        "holdout": holdout,
        "key": hash_text(f"key of draws\n{key}"),
        "experiment": hash_values(settings),
    }


class RuleRecord:
    """Visitors and rewards of a personalised experiment, as entries of a chain.

    Only a hash of the entries is kept unless they are asked for: there are two per visitor, and all can be
    rebuilt from the log.

    Parameters
    ----------
    chain : Chain or ChainHead
    missing : int
        Settled visitors without a reward, if silence counts as missing.
    """

    def __init__(self, chain: Chain | ChainHead, missing: int = 0) -> None:
        self.chain = chain
        self.missing = missing

    @classmethod
    def start(cls, settings: Mapping[str, Any], *, keeps_entries: bool) -> "RuleRecord":
        """Return the record before the first visitor, with what :func:`rule_commitment` returned."""
        return cls(Chain(settings) if keeps_entries else ChainHead(settings))

    @property
    def head(self) -> str:
        """Number of entries and hash over all of them: what to publish while the experiment runs."""
        return self.chain.head

    def visitor(
        self,
        number: int,
        plan: Plan,
        arm: int,
        context: Mapping[str, float],
        forecast: float,
        *,
        is_held: bool,
    ) -> None:
        """Record a visitor whose arm was drawn: the probabilities, and everything that centres the reward."""
        self.chain.add(
            {
                "entry": "visitor",
                "visitor": number,
                "plan": int(plan.number),
                "probabilities": plan.probabilities.tolist(),
                "values": plan.values.tolist(),
                "context": dict(context),
                "forecast": forecast,
                "arm": arm,
                "held": is_held,
            }
        )

    def reward(self, number: int, reward: float | None) -> None:
        """Record the settled reward of a visitor; None if it is missing."""
        self.missing += reward is None
        self.chain.add({"entry": "reward", "visitor": number, "reward": reward})

    def retire(self, arm: int) -> None:
        """Record that an arm is offered to nobody any more."""
        self.chain.add({"entry": "retire", "arm": arm})

    def to_json(self) -> dict[str, Any]:
        """Return plain values; entries are not kept."""
        count, hashed = self.chain.head.split(":")
        return {
            "settings": self.chain.settings,
            "count": int(count),
            "hash": hashed,
            "missing": self.missing,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "RuleRecord":
        """Invert :meth:`to_json`."""
        chain = ChainHead(data["settings"], int(data["count"]), str(data["hash"]))
        return cls(chain, int(data["missing"]))
