"""Arguments of an experiment's methods, checked at the edge and put into one form."""

import reprlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_delta
from orthobandit._foundation.fingerprint import PACKAGE
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import InputWarning, LabelError, ParameterError, RewardError
from orthobandit.estimate import Bounded, Confidence
from orthobandit.estimate.follow.guardrails import Guardrail
from orthobandit.estimate.forecast.baselines import CompiledBaseline, CovariateRegression
from orthobandit.estimate.forecast.contract import Covariates
from orthobandit.experiment.draw.hashing import new_key
from orthobandit.experiment.ledger.ledger import MAX_REWARD_MAGNITUDE
from orthobandit.experiment.settings import (
    REWARDS_REMEDY,
    UNKNOWN,
    Metric,
    Options,
    RewardRange,
    Settings,
    Unknown,
    seconds,
)
from orthobandit.policy import AnytimeElimination, Policy
from orthobandit.showing.numbers import number

# Features of the arms that a visitor is offered: rows by label, or a row (K, d) for every arm in order.
OfferedFeatures = Mapping[str, Sequence[float]] | ArrayLike

MAX_UNIT_CHARACTERS = 1024  # characters: a name or a hash, not a document
MAX_LABEL_CHARACTERS = 1024  # characters of an arm or a metric: tables and charts have to show them
MAX_PROPOSALS_PER_CALL = 1_000_000  # proposals of one call, which take about ten seconds and a gigabyte
MAX_TIME = 253_402_300_799.0  # seconds since 1970 at the end of the year 9999, after which there are no dates
YEAR = 365.25 * 86_400.0  # seconds
MAX_WINDOW_SECONDS = 100 * YEAR  # longer than anybody waits for a reward


def settings_of(arms: ArmSet, policy: Policy[Any] | None, options: Options) -> Settings:
    """Return the settings of an experiment that is begun with these arguments."""
    if not isinstance(arms, ArmSet):
        raise ParameterError(f"arms={arms!r} must be an ArmSet: ArmSet.one_hot(2, labels=['a', 'b'])")
    if policy is not None:
        check_is_policy(policy)
    _check_options(options)
    _check_deltas(policy, options)
    rewards = declared_range(options.rewards, policy)
    if policy is not None and options.expect is not None:
        raise ParameterError(
            f"expect={options.expect!r} must be given to the policy: {type(policy).__name__}"
            f"(expect={options.expect!r}) if it takes one; leave it out here"
        )
    chosen = AnytimeElimination(rewards=rewards, expect=options.expect) if policy is None else policy
    if getattr(chosen, "is_personal", False):
        chosen.start(arms)  # rules that name no arm must be refused before anything is stored
        _check_personal(arms, options)
    expect = options.expect if policy is None else getattr(policy, "expect", None)
    if rewards is not None and expect is not None and expect > rewards[1] - rewards[0]:
        raise ParameterError(
            f"expect={expect!r} is more than arms can differ by if rewards lie in"
            f" [{rewards[0]:g}, {rewards[1]:g}]; give the gap in units of the reward, or leave it out"
        )
    _check_epsilon(chosen, rewards)
    objective = Metric(options.objective, rewards, bool(options.add))
    _check_margins((objective, *options.metrics), options.guardrails)
    check_names("label", arms.labels)
    check_names(
        "metric", [metric.name for metric in (objective, *options.metrics) if isinstance(metric, Metric)]
    )
    warn_of_alike(arms.labels)
    window = seconds(options.window)
    if MAX_WINDOW_SECONDS < window < np.inf:
        raise ParameterError(
            f"window={options.window!r} is {number(window / YEAR)} years; a number is of seconds."
            " Give the time that rewards may take, e.g. '7d', or leave it out to wait for ever"
        )
    if options.silence == "missing" and options.window is None and not options.metrics:
        raise ParameterError(
            "silence='missing' has no effect without `window`: a proposal then waits for its reward for ever."
            " Give the time that rewards may take, e.g. window='7d'"
        )
    return Settings(
        arms=arms,
        policy=chosen,
        key=options.key or new_key(),
        window=window,
        silence=options.silence,
        sticky=bool(options.sticky),
        reference=_reference_of(arms, options.reference),
        holdout=options.holdout,
        metrics=(objective, *options.metrics),
        guardrails=tuple(options.guardrails),
    )


def check_is_policy(policy: object) -> None:
    """Raise `ParameterError` for a class or a name that stands where a policy should."""
    if isinstance(policy, type):
        raise ParameterError(
            f"policy={policy.__name__} is a class; pass an object of it: {policy.__name__}()"
        )
    for method in ("start", "plan", "observe", "decide"):
        if not callable(getattr(policy, method, None)):
            raise ParameterError(f"policy={policy!r} has no method {method}(); it is not a Policy")


def check_clock(clock: object) -> None:
    """Raise `ParameterError` for a clock that is a time instead of a function that returns the time."""
    if not callable(clock):
        raise ParameterError(f"clock={clock!r} must be a function that returns the time in seconds")


def read_clock(clock: Callable[[], float]) -> float:
    """Return the time in seconds that a clock says."""
    now = clock()
    # A clock of whole numbers would be read back from JSON as another type than it was noted in.
    if isinstance(now, int | float | np.number) and np.isfinite(now):
        if now > MAX_TIME:
            raise ParameterError(
                f"clock() returned {now!r}, which is after the year 9999 if it is in seconds since the epoch;"
                " divide milliseconds by 1e3, or nanoseconds by 1e9"
            )
        return float(now)
    raise ParameterError(
        f"clock() returned {now!r}; it must return seconds since the epoch, as time.time does"
        " (of a datetime: its timestamp())"
    )


def _check_options(options: Options) -> None:
    """Refuse settings of the wrong type: text for a bool, or one metric for a list of metrics."""
    for name in ("sticky", "add"):
        value = getattr(options, name)
        if not isinstance(value, bool | np.bool_):
            raise ParameterError(f"{name}={value!r} must be True or False")
    for metric in options.metrics if isinstance(options.metrics, Sequence) else ():
        if isinstance(metric, Metric) and not isinstance(metric.add, bool | np.bool_):
            raise ParameterError(f"add={metric.add!r} of the metric {metric.name!r} must be True or False")
    for name in ("metrics", "guardrails"):
        given = getattr(options, name)
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise ParameterError(f"{name}={given!r} must be a list, also of one: [{given!r}]")


def _check_deltas(policy: Policy[Any] | None, options: Options) -> None:
    """Raise `ParameterError` for a δ above ½, of the policy or of a metric."""
    delta = getattr(policy, "delta", None)
    is_ours = type(policy).__module__.partition(".")[0] == PACKAGE  # elsewhere `delta` may be anything
    if is_ours and delta is not None:
        check_delta(delta)
    for metric in options.metrics:
        if isinstance(metric, Metric):
            check_delta(metric.delta)


def _check_epsilon(policy: Policy[Any], rewards: RewardRange | None) -> None:
    """Raise `ParameterError` for a tolerance that no two arms can exceed: any arm would win at once."""
    if not isinstance(policy, AnytimeElimination) or rewards is None:
        return
    low, high = rewards
    if policy.epsilon >= high - low:
        raise ParameterError(
            f"epsilon={policy.epsilon:g} is no less than arms can differ by if rewards lie in"
            f" [{low:g}, {high:g}], so that any arm would be good enough; give the difference that matters in"
            " units of the reward, e.g. 0.01 for one per cent of visitors, or leave it out"
        )


def _check_margins(metrics: Sequence[Metric], guardrails: Sequence[Guardrail]) -> None:
    """Raise `ParameterError` for a guardrail that could never act, because no arm can be that much worse."""
    ranges = {one.name: one.rewards for one in metrics if isinstance(one, Metric)}
    for rail in guardrails:
        within = ranges.get(rail.metric) if isinstance(rail, Guardrail) else None
        if within is not None and rail.margin >= within[1] - within[0]:
            raise ParameterError(
                f"the guardrail on {rail.metric!r} has margin={rail.margin:g}, which is as much as arms can"
                f" differ by: its values lie in [{within[0]:g}, {within[1]:g}]; it would never act. Give a"
                " smaller margin, in units of the metric"
            )


def check_names(kind: str, names: Sequence[str]) -> None:
    """Raise `LabelError` for names of arms or metrics that cannot be written, or are too long to be shown.

    Checked when an experiment begins and not where labels are made: earlier ones must still open.
    """
    for name in names:
        if not name.strip():
            raise LabelError(f"{kind} {name!r} is blank; give a name that can be seen")
        if len(name) > MAX_LABEL_CHARACTERS:
            raise LabelError(
                f"{kind} {name[:20]!r}… has {len(name):,} characters; use at most {MAX_LABEL_CHARACTERS:,}"
            )
        if "\0" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
            raise LabelError(
                f"{kind} {name!r} must be text in valid Unicode without null characters, which no file or"
                " page can hold"
            )


def warn_of_alike(labels: Sequence[str]) -> None:
    """Warn of labels that are easily confused, because they differ in case or spaces only."""
    seen: dict[str, str] = {}
    for label in labels:
        first = seen.setdefault("".join(label.split()).casefold(), label)
        if first != label:
            warnings.warn(
                f"labels {first!r} and {label!r} differ in case or spaces only; they are two arms",
                InputWarning,
                stacklevel=4,
            )
            return


def _reference_of(arms: ArmSet, reference: int | str) -> int:
    """Return the number of the reference arm; the first one if nobody has named another."""
    if reference == Options.reference:
        return arm_of(arms, reference, "reference")
    return chosen_arm_of(arms, reference, "reference")


def _check_personal(arms: ArmSet, options: Options) -> None:
    """Raise `ParameterError` for settings that have no meaning in a personalised experiment."""
    if arm_of(arms, options.reference) != 0:
        raise ParameterError(
            f"reference={options.reference!r}: a personalised experiment compares with its first arm; give"
            " that arm first"
        )


def declared_range(
    rewards: RewardRange | Unknown | None, policy: Policy[Any] | None = None
) -> RewardRange | None:
    """Return the declared range of the rewards, or None if it is unknown.

    Asymptotic claims must be asked for: `rewards` may be left out only if the policy's own confidence is
    exact. A policy whose confidence is asymptotic does not count, because it is also what
    :class:`AnytimeElimination` has by default.

    Examples
    --------
    >>> declared_range((0, 1)), declared_range("unknown")
    ((0.0, 1.0), None)
    >>> declared_range(None, AnytimeElimination(rewards=(0, 5)))
    (0.0, 5.0)
    """
    mode = getattr(policy, "confidence", None)
    if rewards is None:
        if not isinstance(mode, Confidence) or not mode.is_exact:
            raise ParameterError(f"rewards is not given; {REWARDS_REMEDY}")
        return mode.reward_range if isinstance(mode, Bounded) else None
    if isinstance(rewards, str):
        if rewards != UNKNOWN:
            raise ParameterError(f"rewards={rewards!r} is neither a pair nor 'unknown'; {REWARDS_REMEDY}")
        if isinstance(mode, Bounded):
            raise ParameterError(
                f"rewards='unknown' contradicts the policy, which has {mode}; leave `rewards` out here, or"
                " take the range out of the policy"
            )
        return None
    try:
        # A set has no first element, and text is no number though it can be converted to one.
        if isinstance(rewards, set | frozenset) or any(isinstance(end, str) for end in rewards):
            raise TypeError
        low, high = map(float, rewards)
    except (TypeError, ValueError):
        raise ParameterError(f"rewards={rewards!r} is not a pair of numbers; {REWARDS_REMEDY}") from None
    if not (np.isfinite([low, high]).all() and low < high):
        raise ParameterError(f"rewards={rewards!r} must be two finite numbers, the lowest reward first")
    if max(abs(low), abs(high)) > MAX_REWARD_MAGNITUDE:
        raise ParameterError(
            f"rewards={rewards!r}: no reward can exceed {MAX_REWARD_MAGNITUDE:g}; give the range in which"
            " rewards really lie, or rewards='unknown'"
        )
    if mode is not None and mode != Bounded(low, high):
        raise ParameterError(
            f"rewards={rewards!r} must be given to the policy: {type(policy).__name__}(rewards={rewards!r})"
        )
    return low, high


def arm_of(arms: ArmSet, arm: int | str, name: str = "arm") -> int:
    """Return the number of an arm given by number or label; `name` is the argument's name, for messages."""
    if isinstance(arm, str):
        try:
            return arms.index(arm)
        except LabelError as error:
            raise LabelError(str(error).replace("label=", f"{name}=", 1)) from None
    if isinstance(arm, bool) or not isinstance(arm, int | np.integer) or not 0 <= arm < len(arms):
        raise ParameterError(f"{name}={arm!r} is not an arm; arms are 0 to {len(arms) - 1}, or their labels")
    return int(arm)


def chosen_arm_of(arms: ArmSet, arm: int | str, name: str = "arm") -> int:
    """Return :func:`arm_of` for a choice that is not taken back, and refuse a number that may be a label.

    Where labels are '1', '2' and '3', the number 1 may be meant for the label '1', which is arm 0.
    """
    number = arm_of(arms, arm, name)
    if not isinstance(arm, str) and arms.labels[number] != str(number) and str(number) in arms.labels:
        raise ParameterError(
            f"{name}={arm!r} may be arm number {number}, which is {arms.labels[number]!r}, or the label"
            f" {str(number)!r}; give the label as text"
        )
    return number


def arms_of(arms: ArmSet, available: Sequence[int | str] | None) -> list[int] | None:
    """Return the numbers of the arms that can be shown; None for all."""
    if available is None:
        return None
    if isinstance(available, str):  # otherwise each of its letters would be an arm
        raise ParameterError(f"available={available!r} must be a list of arms: [{available!r}]")
    return [arm_of(arms, arm, "available") for arm in available]


def unit_of(unit: str | None) -> str | None:
    """Check the unit that a proposal is asked for, and return it; None if there is none."""
    if unit is None:
        return None
    if not isinstance(unit, str):
        raise ParameterError(
            f"unit={unit!r} must be text, e.g. a user's name; turn a number into str(number);"
            " for several proposals, use ask_many"
        )
    return _checked_unit(unit)


def _checked_unit(unit: str) -> str:
    """Return a unit that is text of an allowed length; raise an error for any other."""
    if not isinstance(unit, str):
        raise ParameterError(
            f"unit={unit!r} must be text, e.g. a user's name; turn a number into str(number)"
        )
    if not unit.strip():
        raise ParameterError(
            f"unit={unit!r} must be text that is not blank: all such visitors would be one and the same;"
            " leave `unit` out for a visitor without a name"
        )
    if len(unit) > MAX_UNIT_CHARACTERS:
        raise ParameterError(
            f"unit={unit[:20]!r}… has {len(unit):,} characters; at most {MAX_UNIT_CHARACTERS:,} are kept:"
            " use a short name, or a hash of it"
        )
    return unit


def units_of(count: int | None, units: Sequence[str] | None) -> list[str | None]:
    """Return one unit, or None, for each proposal that is asked for."""
    if (count is None) == (units is None):
        raise ParameterError(f"give one of count and units, not {'both' if units is not None else 'neither'}")
    if units is None:
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise ParameterError(
                f"count={count!r} must be a whole number of at least 1; users are given as units=[…]"
            )
        if count > MAX_PROPOSALS_PER_CALL:
            raise ParameterError(
                f"count={count:,} is more than one call can draw; ask for at most"
                f" {MAX_PROPOSALS_PER_CALL:,} at a time"
            )
        return [None] * int(count)
    if isinstance(units, str):  # otherwise each of its letters would be a unit
        raise ParameterError(f"units={units!r} must be a list of text; for one unit, use ask")
    given = list(units)
    if not given:
        raise ParameterError("units is empty; ask for at least one")
    return [_checked_unit(unit) for unit in given]


def with_context(
    context: Covariates | Sequence[Covariates] | None,
    covariates: Covariates | Sequence[Covariates] | None,
    *,
    is_personal: bool,
) -> Covariates | Sequence[Covariates] | None:
    """Return the covariates of visitors: their context, joined with whatever else forecasts use."""
    if context is None:
        return covariates
    if not is_personal:
        raise ParameterError(
            "context is for experiments that are made with Personalised(context=[…]); this one shows the same"
            " arms to everybody, and its forecasts take `covariates`"
        )
    if covariates is None:
        return context
    if isinstance(context, Mapping) and isinstance(covariates, Mapping):
        return {**covariates, **context}
    if isinstance(context, Mapping) or isinstance(covariates, Mapping) or len(context) != len(covariates):
        raise ParameterError("context and covariates must both be one dict, or as many as each other")
    return [{**other, **one} for other, one in zip(covariates, context, strict=True)]


def warn_of_unused(settings: Settings, covariates: Covariates | Sequence[Covariates]) -> None:
    """Warn of covariates that nothing uses; forecasters of other packages are assumed to use them all."""
    baselines = [settings.policy.baseline, *(metric.baseline for metric in settings.metrics)]
    used: set[str] = set(getattr(settings.policy, "context", ()))
    for one in baselines:
        if isinstance(one, CovariateRegression):
            used.update(one.names)
        elif one is not None and not isinstance(one, CompiledBaseline):
            return
    some = covariates if isinstance(covariates, Mapping) else next(iter(covariates), {})
    if not isinstance(some, Mapping) or not used.issubset(some):
        return  # refused when it is read
    are_storable = [isinstance(name, str) and _is_finite(value) for name, value in some.items()]
    if not all(are_storable):
        return  # refused as well
    unused = ", ".join(repr(name) for name in some if name not in used)
    if not unused:
        return
    if used:
        remedy = f"this experiment uses {', '.join(map(repr, sorted(used)))}"
    else:
        remedy = (
            "no forecast of this experiment takes them; begin one with a policy that has"
            " baseline=CovariateRegression(names=[…])"
        )
    warnings.warn(f"covariates {unused} change nothing: {remedy}", InputWarning, stacklevel=4)


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and bool(np.isfinite(float(value)))


def brought_features(
    features: Sequence[OfferedFeatures] | None, count: int, *, is_personal: bool
) -> list[OfferedFeatures] | None:
    """Return the features that each visitor brings, if any do."""
    if features is None:
        return None
    if not is_personal:
        raise ParameterError("features are for experiments that are made with Personalised(features=[…])")
    if isinstance(features, Mapping) or len(features) != count:
        raise ParameterError(f"features must be a list of {count}, one for each proposal")
    return list(features)


def features_by_label(arms: ArmSet, features: OfferedFeatures) -> Mapping[str, Sequence[float]]:
    """Return the features of the arms that are offered by label; an array (K, d) has a row for every arm."""
    if isinstance(features, Mapping):
        return features
    try:
        rows = np.asarray(features, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"features={features!r} must be numbers, a row for each arm") from None
    if rows.ndim != 2 or len(rows) != len(arms):
        raise ParameterError(
            f"features have shape {rows.shape}; give a row for each of the {len(arms)} arms, or rows by label"
            " for those that are on offer"
        )
    return dict(zip(arms.labels, rows.tolist(), strict=True))


def covariates_of(given: Covariates | Sequence[Covariates] | None, count: int) -> list[Covariates] | None:
    """Return the covariates of each proposal that is asked for, if any are given."""
    if given is None:
        return None
    many = [given] * count if isinstance(given, Mapping) else list(given)
    if not all(isinstance(one, Mapping) for one in many):
        raise ParameterError(f"covariates={reprlib.repr(given)} must be numbers by name: {{'age': 42.0}}")
    if len(many) != count:
        raise ParameterError(f"covariates are {len(many)} for {count} proposals; give one dict each")
    return many


def numbers_of(ids: Sequence[int] | Whole) -> Whole:
    """Return the numbers (n,) of proposals; an empty batch is fine."""
    given = np.asarray(ids)
    if given.dtype.kind == "u" and given.size and given.max() > np.iinfo(np.int64).max:
        raise ParameterError(f"ids={ids!r} must be numbers of proposals, as `ask` returned them in `.id`")
    if given.shape == (0,):
        return np.zeros(0, dtype=np.int64)  # an empty list has no type of its own
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ParameterError(f"ids={ids!r} must be numbers of proposals, as `ask` returned them in `.id`")
    return given.astype(np.int64, copy=False)


def values_of(name: str, given: ArrayLike, count: int) -> Array:
    """Return the values (n,) reported for a metric."""
    try:
        values = np.asarray(given)
        if values.dtype != np.float64 or values.ndim != 1:
            values = np.atleast_1d(values).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError, OverflowError):
        raise RewardError(f"{name}={reprlib.repr(given)} must be a number for each proposal") from None
    if values.ndim > 1:
        raise RewardError(f"{name}={reprlib.repr(given)} must be one number for each proposal, not a list")
    if values.shape != (count,):
        raise RewardError(f"{name} has {values.size} values for {count} proposals; give one each")
    return values
