"""The record of a personalised experiment: visitors and rewards, from which gains of rules are recomputed.

A visitor is recorded when the arm is drawn, with all that was fixed before: probabilities, estimated values,
forecast. The reward is recorded when it settles, in the order of draws. A head that is published in between
binds the first without the second.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from orthobandit.arms import ArmSet
from orthobandit.estimate import Plan
from orthobandit.estimate.certificate import Chain, ChainHead, describe_mode
from orthobandit.experiment.ledger.record import hash_text, hash_values
from orthobandit.policy.contextual.personalised import Personalised
from orthobandit.policy.contextual.rule_text import WrittenRule
from orthobandit.verify import RULES


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
    policy: Personalised, arms: ArmSet, key: str, silence: str, settings: Any
) -> dict[str, Any]:
    """Return the commitment made before the first draw: settings of the claims, and two hashes.

    Parameters
    ----------
    policy : Personalised
    arms : ArmSet
    key : str
        That draws are computed from; only its hash is told.
    silence : {"zero", "missing"}
        What a visitor counts for of whom nothing was told.
    settings : plain values
        All settings of the experiment but the key, of which the hash is told.
    """
    written: Sequence[tuple[str, str]] = tuple(policy.rules)  # type: ignore[arg-type]
    return {
        "kind": "rules",
        "rules": RULES,
        "labels": list(arms.labels),
        "columns": list(rule_columns(policy, arms)),
        "written": [[name, text] for name, text in written],
        "confidence": describe_mode(policy.confidence),
        "delta": policy.rules_delta,
        "explore": policy.explore,
        "silence": silence,
        "key": hash_text(f"key of draws\n{key}"),
        "experiment": hash_values(settings),
    }


class RuleRecord:
    """Visitors and rewards of a personalised experiment, as entries of a chain.

    Of the entries no more than a hash is kept, unless they are wanted: there are two for every visitor, and
    all of them follow from the log.

    Parameters
    ----------
    chain : Chain or ChainHead
    missing : int
        Settled visitors of whom nothing was told, where that counts for nothing.
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
        """Record a visitor whose arm was drawn: what was drawn from, and all that rewards are centred by."""
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
