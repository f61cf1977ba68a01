"""Settings of experiments: their defaults, checks, help texts, and their form as plain JSON."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from importlib import import_module
from operator import attrgetter
from typing import Any, Literal, get_args

import numpy as np

from orthobandit._foundation.checks import check_choice, check_fraction
from orthobandit._foundation.release import __version__, check_format
from orthobandit.arms import ArmSet
from orthobandit.errors import DamagedStoreError, ParameterError
from orthobandit.estimate import Asymptotic, Bounded, Confidence, RunningMean
from orthobandit.estimate.follow.guardrails import Guardrail
from orthobandit.estimate.forecast.baselines import Baseline, check_baseline
from orthobandit.experiment.ledger.record import commitment_of, rule_commitment
from orthobandit.policy import AnytimeElimination, Policy
from orthobandit.policy.contextual.personalised import Personalised

Silence = Literal["zero", "missing"]
Unknown = Literal["unknown"]
RewardRange = tuple[float, float]

SILENCES: tuple[Silence, ...] = get_args(Silence)
UNKNOWN: Unknown = "unknown"
# What to do about `rewards`, in every message that asks for it.
REWARDS_REMEDY = (
    "give rewards=(low, high) if every reward lies in a known range, e.g. (0, 1), and claims are exact at"
    " every sample size; or rewards='unknown', and claims are asymptotic"
)
UNITS = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
NEEDED = ("arms", "key", "policy", "reference", "silence", "sticky", "window")  # of what is kept


def seconds(window: str | float | None) -> float:
    """Return a length of time in seconds; +inf for None.

    Examples
    --------
    >>> seconds("7d"), seconds("90 min"), seconds("90m"), seconds(5)
    (604800.0, 5400.0, 5400.0, 5.0)
    """
    if window is None:
        return np.inf
    if isinstance(window, str):
        match = re.fullmatch(rf"\s*(\d+(?:\.\d*)?)\s*({'|'.join(UNITS)})\s*", window)
        if match is None:
            raise ParameterError(f"window={window!r} must be a number with one of {', '.join(UNITS)}: '7d'")
        window = float(match[1]) * UNITS[match[2]]
    is_number = isinstance(window, int | float | np.number) and not isinstance(window, bool)
    if not is_number or not 0 < window < np.inf:
        raise ParameterError(f"window={window!r} must be seconds, more than 0, or text such as '7d'")
    return float(window)


@dataclass(frozen=True)
class Metric:
    """A number that is reported for proposals.

    Parameters
    ----------
    name : str
    rewards : (float, float), optional
        The range of its values; if it is known, intervals are exact at every sample size.
    add : bool
        Whether values of one proposal add up; the sum is final at the end of the window. Otherwise the first
        value is final.
    delta : float
        Probability that any of the metric's intervals is ever wrong. Of the objective under
        :class:`~orthobandit.AnytimeElimination` it is a part of the policy's δ instead, so that intervals and
        declarations hold together.
    baseline : Baseline
        Forecast of the metric's level.
    """

    name: str
    rewards: tuple[float, float] | None = None
    add: bool = False
    delta: float = 0.05
    baseline: Baseline = RunningMean()  # noqa: RUF009

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ParameterError(f"name={self.name!r} of a metric must be text")
        check_fraction("delta", self.delta)
        if isinstance(self.baseline, type):
            name = self.baseline.__name__
            raise ParameterError(f"baseline={name} is a class; pass an object of it: {name}()")
        check_baseline(self.baseline)
        if self.rewards is not None:
            try:
                low, high = map(float, self.rewards)
            except (TypeError, ValueError):
                raise ParameterError(
                    f"rewards={self.rewards!r} of the metric {self.name!r} must be the lowest and the highest"
                    " value that can occur, or left out if they are unknown"
                ) from None
            object.__setattr__(self, "rewards", (low, high))
            Bounded(low, high)

    @property
    def confidence(self) -> Confidence:
        """The mode of the metric's intervals."""
        return Asymptotic() if self.rewards is None else Bounded(*self.rewards)


def _describe(text: str, label: str = "") -> dict[str, str]:
    """Return the metadata of a field of :class:`Options`: one line of help, and its label on forms."""
    return {"help": text, "label": label}


@dataclass(frozen=True, kw_only=True)
class Options:
    """The settings that a user chooses: the one home of their names, types, defaults and help.

    The signatures and docstrings of :meth:`Experiment.create` and :meth:`Experiment.memory`, the body of the
    HTTP request and the dashboard's form repeat no default: they take it, and the help, from here.

    Examples
    --------
    >>> Options.silence, Options().sticky
    ('zero', True)
    >>> Options.help_of("holdout")
    'share of proposals that always get the reference arm and are reported separately'
    """

    rewards: RewardRange | Unknown | None = field(
        default=None,
        metadata=_describe(
            "the lowest and the highest reward that can occur: claims are then exact. Or 'unknown': claims"
            " are then asymptotic",
            "Rewards lie",
        ),
    )
    expect: float | None = field(
        default=None,
        metadata=_describe(
            "the gap between the best arm and the second that you expect, in units of the reward. A hint"
            " about its order of magnitude, which saves rounds if it is right; no claim depends on it",
            "Gap that you expect",
        ),
    )
    window: str | float | None = field(
        default=None,
        metadata=_describe(
            "how long to wait for a reward: seconds, or text such as '7d'; for ever by default",
            "How long rewards may take",
        ),
    )
    silence: Silence = field(
        default="zero",
        metadata=_describe(
            "how a proposal without a reward in its window counts: as 0 ('zero'), or not at all ('missing')",
            "If none comes by then",
        ),
    )
    sticky: bool = field(
        default=True, metadata=_describe("whether a unit that comes again gets its first proposal")
    )
    reference: int | str = field(
        default=0,
        metadata=_describe("the arm that others are compared with, by number or label; the first by default"),
    )
    holdout: float = field(
        default=0.0,
        metadata=_describe(
            "share of proposals that always get the reference arm and are reported separately",
            "Holdout, in per cent",
        ),
    )
    objective: str = field(default="reward", metadata=_describe("the name of the reward"))
    add: bool = field(
        default=False,
        metadata=_describe(
            "whether several rewards of one proposal add up; the sum is final at the end of the window"
        ),
    )
    metrics: Sequence[Metric] = field(
        default=(), metadata=_describe("other numbers that are reported for proposals")
    )
    guardrails: Sequence[Guardrail] = field(
        default=(), metadata=_describe("metrics that retire an arm once it is proven worse")
    )
    key: str | None = field(
        default=None,
        metadata=_describe(
            "64 or 32 hexadecimal digits that draws are computed from; by default random, and stored with the"
            " experiment"
        ),
    )

    @classmethod
    def help_of(cls, name: str) -> str:
        """Return one line of help on a setting."""
        return str(cls.__dataclass_fields__[name].metadata["help"])

    @classmethod
    def label_of(cls, name: str) -> str:
        """Return the label of a setting on forms."""
        return str(cls.__dataclass_fields__[name].metadata["label"])


@dataclass(frozen=True, eq=False)
class Settings:
    """Settings of an experiment: :class:`Options` once they are checked.

    Parameters
    ----------
    arms : ArmSet
    policy : Policy
    key : str
        Of the draws.
    window : float
        Seconds after which a proposal is settled, with or without a reward.
    silence : {"zero", "missing"}
        How a proposal without a reward in its window counts.
    sticky : bool
        Whether a unit that comes again gets its first proposal.
    reference : int
        The arm that others are compared with, and that the holdout is shown.
    holdout : float
        Share of proposals that always get the reference arm and are reported separately.
    metrics : tuple of Metric
        The objective first.
    guardrails : tuple of Guardrail
    """

    arms: ArmSet
    policy: Policy[Any]
    key: str
    window: float = seconds(Options.window)
    silence: Silence = Options.silence
    sticky: bool = Options.sticky
    reference: int = 0
    holdout: float = Options.holdout
    metrics: tuple[Metric, ...] = (Metric(Options.objective),)
    guardrails: tuple[Guardrail, ...] = ()

    def __post_init__(self) -> None:
        check_choice("silence", self.silence, SILENCES)
        if not re.fullmatch(r"([0-9a-f]{32}){1,2}", str(self.key)):
            raise ParameterError("key must be 64 or 32 hexadecimal digits, or left out for a random one")
        if not isinstance(self.holdout, int | float) or not 0 <= self.holdout < 1:
            raise ParameterError(f"holdout={self.holdout} must be a share in [0, 1)")
        if not 0 <= self.reference < len(self.arms):
            raise ParameterError(f"reference={self.reference} is not an arm")
        for kind, given in ((Metric, self.metrics), (Guardrail, self.guardrails)):
            for one in given:
                if not isinstance(one, kind):
                    raise ParameterError(f"{one!r} must be a {kind.__name__}, in a list of them")
        names = [metric.name for metric in self.metrics]
        if len(set(names)) < len(names):
            raise ParameterError(f"metrics={names} must have different names")
        for rail in self.guardrails:
            if rail.metric not in names:
                raise ParameterError(f"guardrail on {rail.metric!r}: metrics are {', '.join(names)}")
            if not self.is_personal and not hasattr(self.policy, "retire"):
                raise ParameterError(f"{type(self.policy).__name__} cannot retire arms; guardrails need that")
        self._check_silence()
        if any(metric.add for metric in self.metrics) and not np.isfinite(self.window):
            raise ParameterError("rewards that add up are final at the end of the window; give `window`")

    def _check_silence(self) -> None:
        """Refuse to count silence as 0 if rewards cannot be 0: the first silent proposal would fail."""
        if self.silence != "zero":
            return
        # Without a window a proposal waits for its objective, and for nothing else.
        for metric in self.metrics if np.isfinite(self.window) else self.metrics[1:]:
            low, high = metric.confidence.reward_range
            if not low <= 0 <= high:
                raise ParameterError(
                    f"silence='zero' would count 0 for {metric.name!r}, outside its [{low:g}, {high:g}];"
                    " declare a range that has 0 in it, or choose silence='missing'"
                )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the metrics, the objective first."""
        return tuple(metric.name for metric in self.metrics)

    @property
    def is_personal(self) -> bool:
        """Whether the policy plans for each visitor."""
        return bool(getattr(self.policy, "is_personal", False))

    def commitment(self) -> dict[str, Any] | None:
        """Return the commitment made before the first draw; None for policies without certificates."""
        rest = {name: value for name, value in self.to_json().items() if name != "key"}
        if isinstance(self.policy, Personalised):
            return rule_commitment(
                self.policy, self.arms, self.key, rest, silence=self.silence, holdout=self.holdout
            )
        if not isinstance(self.policy, AnytimeElimination):
            return None
        return commitment_of(self.policy, self.arms, self.key, rest)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "arms": {"features": self.arms.features.tolist(), "labels": list(self.arms.labels)},
            "policy": describe_settings(self.policy),
            "key": self.key,
            "window": self.window if np.isfinite(self.window) else None,
            "silence": self.silence,
            "sticky": self.sticky,
            "reference": self.reference,
            "holdout": self.holdout,
            "metrics": [describe_settings(metric) for metric in self.metrics],
            "guardrails": [describe_settings(rail) for rail in self.guardrails],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], policy: Policy[Any] | None = None) -> "Settings":
        """Invert :meth:`to_json`; a policy of another package must be given again.

        Raises
        ------
        VersionError
            If a newer release wrote them in a format that this one does not know.
        """
        if "format" in data:  # no release has stamped settings so far; a newer one may
            check_format("the settings of the experiment", data)
        missing = [name for name in NEEDED if name not in data]
        if missing:
            raise DamagedStoreError(
                f"the settings have no {missing[0]!r}; they are not those of an experiment, or are damaged"
            )
        kept = data["policy"]
        if policy is not None and describe_settings(policy) != kept:
            raise ParameterError(
                f"the experiment was begun with {_said(kept)}, not with {policy!r}; leave `policy` out, or"
                " begin another experiment"
            )
        return cls(
            arms=ArmSet(data["arms"]["features"], data["arms"]["labels"]),
            policy=made(kept) if policy is None else policy,
            key=data["key"],
            window=np.inf if data["window"] is None else data["window"],
            silence=data["silence"],
            sticky=data["sticky"],
            reference=data["reference"],
            holdout=data["holdout"],
            metrics=tuple(made(metric) for metric in data["metrics"]),
            guardrails=tuple(made(rail) for rail in data["guardrails"]),
        )


def describe_settings(thing: Any) -> Any:
    """Return settings (nested dataclasses of plain values) as plain values."""
    if is_dataclass(thing) and not isinstance(thing, type):
        values = {
            part.name: describe_settings(getattr(thing, part.name)) for part in fields(thing) if part.init
        }
        kind = type(thing)
        return {"class": f"{kind.__module__}:{kind.__qualname__}", "settings": values}
    if isinstance(thing, np.ndarray):
        return describe_settings(thing.tolist())
    if isinstance(thing, Sequence) and not isinstance(thing, str):
        return [describe_settings(part) for part in thing]
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    if isinstance(thing, np.generic):
        return thing.item()
    if callable(thing):
        return {"function": f"{thing.__module__}:{getattr(thing, '__qualname__', repr(thing))}"}
    raise ParameterError(f"{thing!r} cannot be kept with an experiment; settings must be plain values")


def made(data: Any) -> Any:
    """Invert :func:`describe_settings` for settings of this package; refuse to import anything else."""
    if isinstance(data, list):
        return tuple(made(part) for part in data)
    if not isinstance(data, Mapping):
        return data
    module, _, name = str(data.get("class", data.get("function", ""))).partition(":")
    if module.partition(".")[0] != "orthobandit" or "<" in name:
        raise ParameterError(f"the experiment uses {_said(data)}; open it with `policy=` as it was made with")
    found = _named(module, name)
    if "function" in data:
        return found
    settings = {key: made(value) for key, value in data["settings"].items()}
    try:
        return found(**settings)
    except TypeError as error:
        raise ParameterError(
            f"the experiment uses {_said(data)}, which release {__version__} cannot make ({error}); open it"
            " with the release that wrote it, or a newer one"
        ) from None


def _named(module: str, name: str) -> Any:
    """Return the class or function of this package that is stored under this name."""
    try:
        return attrgetter(name)(import_module(module))
    except (ImportError, AttributeError):
        raise ParameterError(
            f"the experiment uses {module}:{name}, which release {__version__} does not have; open it with"
            " the release that wrote it, or with `policy=` as it was made with"
        ) from None


def _said(data: Any) -> str:
    if not isinstance(data, Mapping) or "class" not in data:
        return str(data)
    inside = ", ".join(f"{name}={_said(value)}" for name, value in data["settings"].items())
    return f"{str(data['class']).rpartition(':')[2]}({inside})"
