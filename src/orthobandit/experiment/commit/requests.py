"""Requests: what each method of an experiment does in a commit, once its arguments are checked.

:class:`Experiment` waits for a request in its thread, :class:`AsyncExperiment` in a coroutine. What a method
means is said here, once for both.

Requests in the same commit all arrived before any of them was answered, so any order among them is right:
rewards come first, and asks come last and profit from everything else. Requests of one kind are done together
and form one entry of the log.
"""

import json
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ConflictError, OrthobanditError, ParameterError, RewardError
from orthobandit.estimate.certificate import Certificate
from orthobandit.estimate.forecast.contract import Covariates
from orthobandit.experiment.arguments import (
    OfferedFeatures,
    arms_of,
    brought_features,
    check_names,
    chosen_arm_of,
    covariates_of,
    features_by_label,
    numbers_of,
    values_of,
    warn_of_alike,
    warn_of_unused,
    with_context,
)
from orthobandit.experiment.certificate import certify_decision, head_of
from orthobandit.experiment.commit import transaction
from orthobandit.experiment.commit.transaction import Request, Turn, drawn_before
from orthobandit.experiment.draw.edge_plan import EdgePlan
from orthobandit.experiment.draw.exposures import Exposed, Known, batch_of, expose, named
from orthobandit.experiment.proposal import Proposal
from orthobandit.experiment.refusals import Refusal
from orthobandit.experiment.report.overview import Glance, glance_of
from orthobandit.experiment.report.report import Report, report_of
from orthobandit.experiment.settings import Settings
from orthobandit.experiment.store import Store

Answer = TypeVar("Answer")
Rewards = float | Mapping[str, float]
ManyRewards = ArrayLike | Mapping[str, ArrayLike]
# The answer to a batch of rewards: what was refused; None to a single reward, whose refusal is an error.
Refused = tuple[Refusal, ...] | None
MAX_PROPOSAL = 2**63 - 1  # number that a proposal can have
MAX_SHARED_ROWS = 64  # of a request; longer ones gain nothing by company
MAX_KEY_LENGTH = 200  # characters
MAX_REASON_CHARACTERS = 1_000  # why an experiment was stopped: a sentence, not a document
REMEMBERED_SECONDS = 7 * 86_400.0  # for which requests with an idempotency key are remembered


# Requests that can be done together


@dataclass(frozen=True, eq=False)
class Asking:
    """A request for proposals.

    Attributes
    ----------
    do : function
        Does it in a turn, given the attributes below.
    names : sequence of str or None, (n,)
    available : sequence of int or str, optional
    covariates : list of mappings (n,), optional
    features : list (n,), optional
        Of the arms, where every visitor brings their own.
    """

    do: Callable[..., list[Proposal]]
    names: Sequence[str | None]
    available: Sequence[int | str] | None = None
    covariates: list[Covariates] | None = None
    features: list[OfferedFeatures] | None = None

    def __call__(self, turn: Turn) -> list[Proposal]:
        """Draw the proposals."""
        return self.do(turn, self.names, self.available, self.covariates, self.features)

    @property
    def content(self) -> list[Any]:
        """What is asked, for the fingerprint."""
        return ["ask", self.names, self.available, self.covariates, self.features]

    @property
    def kind(self) -> tuple[str, ...] | None:
        """The key shared by requests that can be done together; None if this one cannot."""
        if self.available is not None or len(self.names) > MAX_SHARED_ROWS:
            return None
        given = {"covariates": self.covariates, "features": self.features}
        return tuple(name for name, value in given.items() if value is not None)

    @staticmethod
    def together(turn: Turn, requests: Sequence["Asking"]) -> list[list[Proposal]]:
        """Do requests of one kind; return what each would have returned."""
        names = [name for one in requests for name in one.names]
        given = [row for one in requests for row in one.covariates or ()]
        brought = [row for one in requests for row in one.features or ()]
        found = requests[0].do(turn, names, None, given or None, brought or None)
        out = []
        done = 0
        for one in requests:
            out.append(found[done : done + len(one.names)])
            done += len(one.names)
        return out


@dataclass(frozen=True, eq=False)
class Telling:
    """A request to record rewards.

    Attributes
    ----------
    do : function
        Does it in a turn, given all that follows.
    numbers : sequence of int, (n,)
    values : mapping of str to sequence of float (n,)
        By metric.
    is_batch : bool
        Whether refusals are returned; otherwise the one reward is taken, or the error raised.
    """

    do: Callable[..., list[Refusal]]
    numbers: Sequence[int] | Whole
    values: Mapping[str, Sequence[float] | Array]
    is_batch: bool = True

    def __call__(self, turn: Turn) -> Refused:
        """Record the rewards."""
        [answer] = self.together(turn, [self])
        if isinstance(answer, OrthobanditError):
            raise answer
        return answer

    @property
    def content(self) -> list[Any]:
        """What is told, for the fingerprint."""
        values = {name: np.asarray(given, dtype=np.float64) for name, given in self.values.items()}
        return ["tell", np.asarray(self.numbers, dtype=np.int64), values]

    @property
    def kind(self) -> tuple[str, ...] | None:
        """The key shared by requests that can be done together; None if this one cannot."""
        return None if len(self.numbers) > MAX_SHARED_ROWS else tuple(self.values)

    @staticmethod
    def together(turn: Turn, requests: Sequence["Telling"]) -> list[Refused | OrthobanditError]:
        """Do requests of one kind; return what each would have returned, or raised."""
        first = requests[0]
        numbers = _joined([one.numbers for one in requests], np.int64)
        values = {name: _joined([one.values[name] for one in requests], np.float64) for name in first.values}
        try:
            refused = first.do(turn, numbers, values)
        except RewardError as error:  # of a metric that all of them name
            return [error] * len(requests)
        answers: list[Refused | OrthobanditError] = []
        start = 0
        for request in requests:
            end = start + len(request.numbers)
            own = tuple(
                replace(refusal, index=refusal.index - start)
                for refusal in refused
                if start <= refusal.index < end
            )
            answers.append(own if request.is_batch else own[0].error if own else None)
            start = end
        return answers


@dataclass(frozen=True, eq=False)
class Change(Generic[Answer]):
    """Any other request that changes the experiment.

    Attributes
    ----------
    do : function
    content : list
        What is changed, for the fingerprint.
    """

    do: Callable[[Turn], Answer]
    content: list[Any]

    def __call__(self, turn: Turn) -> Answer:
        """Change it."""
        return self.do(turn)


def _joined(parts: Sequence[Sequence[float] | Whole | Array], dtype: type) -> Any:
    """Return several sequences of numbers, one after the other, as one array."""
    if len(parts) == 1:
        return np.asarray(parts[0], dtype=dtype)
    return np.array([number for part in parts for number in part], dtype=dtype)


def groups(requests: Iterable[Request]) -> list[list[int]]:
    """Group requests that can be done together: rewards, then those that stand alone, then asks."""
    asking: dict[tuple[str, ...], list[int]] = {}
    telling: dict[tuple[str, ...], list[int]] = {}
    alone: list[list[int]] = []
    for place, request in enumerate(requests):
        kind = request.kind if isinstance(request, Asking | Telling) else None
        if kind is None:
            alone.append([place])
        else:
            kinds = asking if isinstance(request, Asking) else telling
            kinds.setdefault(kind, []).append(place)
    return [*telling.values(), *alone, *asking.values()]


# What an experiment's methods ask for


class Methods:
    """Makes requests of one experiment; arguments as those of :class:`~orthobandit.Experiment`."""

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._warned_of_unused = False

    def ask(
        self,
        names: Sequence[str | None],
        available: Sequence[int | str] | None = None,
        covariates: Covariates | Sequence[Covariates] | None = None,
        context: Covariates | Sequence[Covariates] | None = None,
        features: Sequence[OfferedFeatures] | None = None,
    ) -> Asking:
        """Return the request that draws a proposal for each name."""
        given = with_context(context, covariates, is_personal=self._settings.is_personal)
        rows = covariates_of(given, len(names))
        if given is not None and not self._warned_of_unused:
            self._warned_of_unused = True  # once is enough: those of the next visitor are of the same kind
            warn_of_unused(self._settings, given)
        brought = brought_features(features, len(names), is_personal=self._settings.is_personal)
        return Asking(self._ask, names, available, rows, brought)

    def _ask(
        self,
        turn: Turn,
        names: Sequence[str | None],
        available: Sequence[int | str] | None,
        covariates: Sequence[Covariates] | None,
        features: Sequence[OfferedFeatures] | None,
    ) -> list[Proposal]:
        """Settle what is due, then draw a proposal for each name."""
        turn.ledger.settle(self._clock())
        arms = turn.ledger.arms
        shown = arms_of(arms, available)
        rows = None if features is None else [features_by_label(arms, one) for one in features]
        return transaction.ask(turn, self._store, names, shown, covariates, rows)

    def tell(self, number: int, reward: Rewards) -> Telling:
        """Return the request that tells the reward of one proposal."""
        if type(number) is int and type(reward) is float and 0 < number <= MAX_PROPOSAL:
            return Telling(self._tell, [number], {self._settings.names[0]: [reward]}, is_batch=False)
        many = reward if isinstance(reward, Mapping) else {self._settings.names[0]: reward}
        telling = self.tell_many([number], {name: [value] for name, value in many.items()})
        return replace(telling, is_batch=False)

    def tell_many(self, ids: Sequence[int] | Whole, rewards: ManyRewards) -> Telling:
        """Return the request that tells rewards of several proposals."""
        many = rewards if isinstance(rewards, Mapping) else {self._settings.names[0]: rewards}
        if not many:
            raise RewardError(
                f"rewards={{}} name no metric; the metrics are {', '.join(self._settings.names)}"
            )
        numbers = numbers_of(ids)
        values = {name: values_of(name, given, len(numbers)) for name, given in many.items()}
        return Telling(self._tell, numbers, values)

    def _tell(self, turn: Turn, numbers: Whole, values: Mapping[str, Array]) -> list[Refusal]:
        turn.ledger.settle(self._clock())
        return transaction.tell(turn, self._store, numbers, values)

    def expose(
        self,
        plan: int,
        units: Sequence[str],
        arms: Sequence[int] | Whole,
        rewards: Known | Mapping[str, Known] | None = None,
        covariates: Sequence[Covariates] | None = None,
        context: Sequence[Covariates] | None = None,
    ) -> Change[Exposed]:
        """Return the request that takes in draws made elsewhere."""
        rows = covariates
        if context is not None:
            given = with_context(context, covariates, is_personal=self._settings.is_personal)
            rows = covariates_of(given, len(units))
        batch = batch_of(plan, units, arms, named(rewards, self._settings.names[0]), rows)

        def request(turn: Turn) -> Exposed:
            turn.ledger.settle(self._clock())
            return expose(turn, self._store, batch)

        return Change(request, ["expose", *batch])

    def begin(self, turn: Turn) -> None:
        """Log the commitment and the first plan, unless they are in the log already."""
        if not turn.seq:
            turn.ledger.note(self._clock(), "begin", commitment=self._settings.commitment())

    def note(self, kind: str, reason: str | None = None) -> Change[None]:
        """Return the request that logs a tick, a pause, a resumption, or a stop with its reason."""
        if reason is not None and (not isinstance(reason, str) or len(reason) > MAX_REASON_CHARACTERS):
            raise ParameterError(
                f"reason={reprlib.repr(reason)} must be text of at most {MAX_REASON_CHARACTERS:,} characters"
            )
        data = {} if reason is None else {"reason": reason}
        return Change(lambda turn: turn.ledger.note(self._clock(), kind, **data), [kind, reason])

    def retire(self, arm: int | str) -> Change[None]:
        """Return the request that takes an arm out."""

        def request(turn: Turn) -> None:
            turn.ledger.note(self._clock(), "retire", arm=chosen_arm_of(turn.ledger.arms, arm))

        return Change(request, ["retire", arm])

    def extend(self, arms: ArmSet | Callable[[ArmSet], ArmSet]) -> Change[None]:
        """Return the request that adds arms."""

        def request(turn: Turn) -> None:
            new = arms(turn.ledger.arms) if callable(arms) else arms
            if not isinstance(new, ArmSet):
                raise ParameterError(
                    f"arms={reprlib.repr(new)} must be an ArmSet: the present arms in their order, then the"
                    " new ones"
                )
            check_names("label", new.labels)
            warn_of_alike(new.labels)
            turn.ledger.note(self._clock(), "extend", features=new.features.tolist(), labels=list(new.labels))

        # A function has no content: only the words of its caller tell it from another.
        given = [arms.features, arms.labels] if isinstance(arms, ArmSet) else []
        return Change(request, ["extend", *given])

    def known(self, unit: str) -> Callable[[Turn], Proposal | None]:
        """Return the request that looks up the first proposal of a unit."""
        if not isinstance(unit, str):
            raise ParameterError(f"unit={unit!r} must be text; turn a number into str(number)")
        return lambda turn: transaction.known(turn, self._store, unit)

    def arms(self, turn: Turn) -> ArmSet:
        """Return the current arms."""
        return turn.ledger.arms

    def edge_plan(self, turn: Turn) -> EdgePlan:
        """Return the current plan for clients that draw by themselves."""
        return EdgePlan.of(turn.ledger, self._clock())

    def report(self, turn: Turn) -> Report:
        """Return the report, after settling proposals whose window has passed."""
        self.settle(turn)
        return report_of(turn.ledger, self._name)

    @property
    def _name(self) -> str:
        """The name of the experiment, if its store has one."""
        return str(getattr(self._store, "title", ""))

    def settle(self, turn: Turn) -> int:
        """Settle proposals whose window has passed; return the length of the settled prefix."""
        now = self._clock()
        if turn.ledger.is_due(now):
            turn.ledger.settle(now)
        return turn.ledger.waiting.first - 1

    def glance(self, turn: Turn) -> Glance:
        """Return the report without writing anything."""
        return glance_of(turn.ledger, self._name)

    def printed(self, turn: Turn) -> Report:
        """Return the report for printing: nothing is written, and it says so if that makes a difference."""
        report = glance_of(turn.ledger, self._name).report
        overdue = turn.ledger.waiting.count_overdue(self._clock())
        if not overdue:
            return report
        whose = "1 awaited proposal" if overdue == 1 else f"{overdue:,} awaited proposals"
        note = f"the window of {whose} has passed; printing changes nothing, report() settles them"
        return replace(report, notes=(*report.notes, note))

    def certificate(self, turn: Turn) -> Certificate:
        """Return the certificate of the decision."""
        return certify_decision(turn.ledger)

    def head(self, turn: Turn) -> str:
        """Return the number of entries and the hash over all of them, to publish."""
        return head_of(turn.ledger.feed)


# Requests with a key: done once, and answered alike however often they are repeated


def check_key(key: str) -> str:
    """Check an idempotency key and return it."""
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY_LENGTH or not key.isprintable():
        raise ParameterError(f"key={key!r} must be printable text of 1 to {MAX_KEY_LENGTH} characters")
    return key


class _Answered(NamedTuple):
    """What is stored under a key: words and fingerprint of the request, and its answer."""

    words: str
    fingerprint: str
    value: list[Proposal] | Exposed | Refused


def once(store: Store, key: str, words: str, request: Request) -> Request:
    """Return a request that is done unless one with its key was done before.

    The key is stored in the same commit as the effect, with a fingerprint of the request. A request that was
    refused is not remembered. One that only reads is done every time.

    Parameters
    ----------
    store : Store
    key : str
    words : str
        Describes the request; the same key with another description is refused.
    request : Request
        Returns proposals, the result of exposures, refusals of a batch of rewards, or nothing.
    """
    if not isinstance(request, Asking | Telling | Change):
        return request
    fingerprint = _fingerprint_of(request.content)

    def done(turn: Turn) -> Any:
        """Return the stored answer if the key is known; otherwise do the request and store its answer."""
        found = _before(turn, store, key)
        if found is not None:
            if found.words != words or found.fingerprint != fingerprint:
                raise ConflictError(f"the key {key!r} was used for another request before; use a new one")
            return found.value
        value = request(turn)
        turn.done[key] = _Answered(words, fingerprint, value)
        if turn.writer is not None:
            text = json.dumps({"words": words, "request": fingerprint, **_kept(value)})
            turn.writer.remember(key, turn.ledger.at, text)
        return value

    return done


def _fingerprint_of(content: list[Any]) -> str:
    """Return a hash of a request; later releases must find the same one when it is repeated."""
    return blake2b(json.dumps(_plain(content)).encode(), digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    """Return a request's content as JSON values; the order of names makes no difference."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return sorted(([str(name), _plain(one)] for name, one in value.items()), key=lambda pair: pair[0])
    if isinstance(value, Iterable):
        return [_plain(one) for one in value]
    # No request can use anything else: it is refused when it is carried out, not here.
    return repr(value)


def _kept(value: list[Proposal] | Exposed | Refused) -> dict[str, Any]:
    """Return the plain values that an answer is stored as."""
    if isinstance(value, Exposed):
        return {"exposed": value.to_json()}
    if isinstance(value, tuple):
        return {"refused": [refusal.to_json() for refusal in value]}
    return {"proposals": None if value is None else [one.id for one in value]}


def _before(turn: Turn, store: Store, key: str) -> _Answered | None:
    """Return what is stored under this key, if anything."""
    known: _Answered | None = turn.done.get(key)
    if known is not None:
        return known
    kept = None if turn.writer is None else turn.writer.recall(key)
    if kept is None:
        return None
    data = json.loads(kept)
    value: list[Proposal] | Exposed | Refused
    if "exposed" in data:
        value = Exposed.from_json(data["exposed"])
    elif "refused" in data:
        value = tuple(Refusal.from_json(row) for row in data["refused"])
    else:
        numbers = data["proposals"]
        value = None if numbers is None else drawn_before(turn, store, numbers)
    return _Answered(data["words"], data["request"], value)
