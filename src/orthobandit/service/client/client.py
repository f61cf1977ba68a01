"""Clients of the service: `Client`, and `AsyncClient` for coroutines.

Every request is described once, by a method of :class:`Client` that returns a :class:`Call`. Its decorator
:func:`_sent` turns it into a method that sends the call and returns the answer; :func:`_awaited` makes the
coroutine of the same name, arguments and answer.
"""

import asyncio
import re
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import update_wrapper
from inspect import signature, unwrap
from types import TracebackType
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Self, TypeVar, get_args
from urllib.parse import quote
from uuid import uuid4

import numpy as np

from orthobandit._foundation.extras import optional_package
from orthobandit.errors import (
    Argument,
    DesignError,
    MissingExtraError,
    OrthobanditError,
    ParameterError,
    ServiceError,
)
from orthobandit.estimate.forecast.contract import Covariates
from orthobandit.experiment import Proposal, Refusal
from orthobandit.experiment.draw.edge_plan import EdgePlan
from orthobandit.experiment.settings import Silence, Unknown
from orthobandit.service.client.data import (
    DescribedArm,
    ExperimentData,
    ExposedData,
    ExposuresData,
    GuardrailData,
    MetricSettings,
    ReportData,
)
from orthobandit.service.http.problem_kinds import ERRORS, PREFIX
from orthobandit.service.settings import PORT

RETRIES = 4  # times that a request is sent again by default
TIMEOUT = 30.0  # seconds to wait for each answer by default
BUSY = (429, 502, 503, 504)  # answers after which the same request may succeed
Rewards = float | Mapping[str, float]
ManyRewards = Sequence[float] | Mapping[str, Sequence[float]]
# Errors that can be made from their message alone.
PLAIN = {kind: error for error, kind in ERRORS if error not in (DesignError, MissingExtraError)}
Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


@dataclass(frozen=True)
class Call(Generic[Answer]):
    """One request, and how its answer is read.

    A write has an idempotency key, by which the server recognises a repeat.
    """

    method: str
    path: str
    json: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    read: Callable[[Any], Answer] = lambda data: data


def read_call(path: str, read: Callable[[Any], Answer] = lambda data: data) -> Call[Answer]:
    """Return a request that changes nothing."""
    return Call("GET", path, None, {"Accept": "application/json"}, read)


def write_call(
    path: str, json: Any = None, key: str | None = None, read: Callable[[Any], Answer] = lambda data: data
) -> Call[Answer]:
    """Return a request that changes something, with this idempotency key or a new one."""
    headers = {"Idempotency-Key": key or uuid4().hex}
    return Call("POST", path, {} if json is None else json, headers, read)


def path_of(key: str, *parts: str) -> str:
    """Return the path of an experiment, or of one of its resources.

    Examples
    --------
    >>> path_of("page", "arms", "a/b", "retire")
    '/v1/experiments/page/arms/a%2Fb/retire'
    """
    return "/".join(["/v1/experiments", *(quote(part, safe="") for part in (key, *parts))])


def drop_missing(**values: Any) -> dict[str, Any]:
    """Return the values that are not None, with lists for tuples and arrays."""
    return {
        name: value if isinstance(value, str | Mapping) or not isinstance(value, Sequence) else list(value)
        for name, value in values.items()
        if value is not None
    }


def plain_rewards(rewards: ManyRewards) -> Any:
    """Return rewards as plain lists."""
    if isinstance(rewards, Mapping):
        return {name: np.asarray(values, float).tolist() for name, values in rewards.items()}
    return np.asarray(rewards, float).tolist()


def proposal_of(data: Mapping[str, Any]) -> Proposal:
    """Return a proposal as `Experiment.ask` would."""
    probabilities = np.array(data["probabilities"], dtype=float)
    probabilities.flags.writeable = False
    return Proposal(
        id=data["id"],
        arm=data["arm"],
        label=data["label"],
        plan=data["plan"],
        probabilities=probabilities,
        baseline=data["baseline"],
        held=data["held"],
    )


def proposals_of(data: Mapping[str, Any]) -> list[Proposal]:
    """Return proposals as `Experiment.ask_many` would."""
    return [proposal_of(one) for one in data["proposals"]]


def refusals_of(data: Mapping[str, Any]) -> tuple[Refusal, ...]:
    """Return refusals as `Experiment.tell_many` would."""
    return tuple(
        Refusal(row["index"], row["metric"], problem_error(row["type"], row["detail"]))
        for row in data["refused"]
    )


def nothing(_: object) -> None:
    """Read the answer to a request that is only acknowledged."""


def pages_call(after: str) -> Call[dict[str, Any]]:
    """Return the request for the keys of experiments beyond `after`."""
    return Call("GET", "/v1/experiments", {"after": after})


def error_of(status: int, data: Any, text: str) -> OrthobanditError:
    """Return the error of an answer: the same class that `Experiment` would raise."""
    if not isinstance(data, Mapping) or not str(data.get("type", "")).startswith(PREFIX):
        return ServiceError(f"the server answered {status}: {text[:200]!r}", status=status)
    detail = str(data.get("detail", ""))
    error = problem_error(str(data["type"]), detail)
    if isinstance(error, ServiceError):
        return ServiceError(f"{data.get('title')}: {detail}", status=status, kind=error.kind)
    return error


def problem_error(kind: str, detail: str) -> OrthobanditError:
    """Return the error that a kind of problem stands for, in the server's words."""
    kind = kind.removeprefix(PREFIX)
    known = PLAIN.get(kind)
    return ServiceError(detail, kind=kind) if known is None else known(detail)


class _Base:
    """Shared by both clients: where the server is, and when to try again."""

    def __init__(self, address: str, token: str | None, *, retries: int, timeout: float) -> None:
        self._httpx = optional_package("httpx", "client", "a client of the service")
        if not isinstance(address, str) or not re.match(r"https?://[^/\s]", address):
            raise ParameterError(
                Argument("address", address),
                f" must be the address of a server, such as 'http://127.0.0.1:{PORT}'",
            )
        if token is not None and not (isinstance(token, str) and re.fullmatch(r"[!-~]+", token)):
            # Not repeated here, because it may be secret but for a line end.
            raise ParameterError("token must be text without blanks or line ends, as the server printed it")
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._address = address.rstrip("/")
        self._retries = retries
        self._options = {"base_url": self._address, "headers": headers, "timeout": timeout}

    def _pause(self, attempt: int) -> float:
        # Doubled each time, so that many clients do not keep a busy server busy.
        return float(min(0.1 * 2**attempt, 2.0))

    def _failed(self, response: Any, attempt: int) -> OrthobanditError | None:
        """Return the error to raise for a response; None if it succeeded or the request is sent again."""
        if response.is_success:
            return None
        if response.status_code in BUSY and attempt < self._retries:
            return None  # sent again
        try:
            data = response.json()
        except ValueError:
            data = None
        return error_of(response.status_code, data, response.text)

    def _lost(self, error: Exception) -> ServiceError:
        tries = self._retries + 1
        return ServiceError(
            f"{self._address} could not be reached in {tries} tries: {error or type(error).__name__}; is the"
            " server running?"
        )


def _sent(
    describe: Callable[Concatenate[Any, Arguments], Call[Answer]],
) -> Callable[Concatenate["Client", Arguments], Answer]:
    """Return a method that sends the call which `describe` returns, and reads its answer."""

    def send(self: "Client", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        return self._send(describe(self, *args, **kwargs))

    shown = signature(describe)
    [answer] = get_args(shown.return_annotation)
    update_wrapper(send, describe)
    # Help and the reference show what the method returns, not the call behind it.
    send.__signature__ = shown.replace(return_annotation=answer)  # type: ignore[attr-defined]
    return send


def _awaited(
    method: Callable[Concatenate["Client", Arguments], Answer],
) -> Callable[Concatenate["AsyncClient", Arguments], Coroutine[Any, Any, Answer]]:
    """Return the coroutine of a method of :class:`Client` that :func:`_sent` made."""
    describe: Callable[..., Call[Answer]] = unwrap(method)

    async def send(self: "AsyncClient", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        return await self._send(describe(self, *args, **kwargs))

    update_wrapper(send, method)
    send.__qualname__ = send.__qualname__.replace("Client.", "AsyncClient.")
    return send


class Client(_Base):
    """Experiments on a server, with the methods of :class:`~orthobandit.Experiment`.

    A request whose answer is lost is sent again with the same ``Idempotency-Key``, so that nothing is drawn
    or counted twice. Errors are those of `Experiment`, in the server's words;
    :class:`~orthobandit.errors.ServiceError` where it has none.

    Parameters
    ----------
    address : str
        Of the server, e.g. ``"http://127.0.0.1:8000"``.
    token : str, optional
    retries : int
        How often a request is sent again when the connection is lost or the server is busy.
    timeout : float
        Seconds to wait for each answer.
    """

    def __init__(
        self, address: str, token: str | None = None, *, retries: int = RETRIES, timeout: float = TIMEOUT
    ) -> None:
        super().__init__(address, token, retries=retries, timeout=timeout)
        self._http = self._httpx.Client(**self._options)

    @_sent
    def create(
        self,
        key: str,
        arms: Sequence[str | DescribedArm],
        *,
        rewards: Sequence[float] | Unknown | None = None,
        delta: float | None = None,
        epsilon: float | None = None,
        goal: Literal["identify", "earn"] | None = None,
        expect: float | None = None,
        covariates: Sequence[str] | None = None,
        context: Sequence[str] | None = None,
        rules: Mapping[str, str] | None = None,
        explore: float | None = None,
        features: Sequence[str] | None = None,
        window: str | float | None = None,
        silence: Silence | None = None,
        sticky: bool | None = None,
        reference: str | None = None,
        holdout: float | None = None,
        objective: str | None = None,
        add: bool | None = None,
        metrics: Sequence[MetricSettings] | None = None,
        guardrails: Sequence[GuardrailData] | None = None,
    ) -> Call[ExperimentData]:
        """Begin an experiment, or go on with the one that was begun with the same settings.

        So a program that is started again may call it again. If the settings differ, the error says which.
        Settings that are left out get the defaults of :meth:`Experiment.create` and
        :class:`AnytimeElimination`; only `rewards` must be given.

        Parameters
        ----------
        key : str
            Name of the experiment: lower-case letters, digits, ``-``, ``_`` and ``.``.
        arms : sequence
            Labels, or dicts with a label and features.
        rewards : (float, float) or "unknown"
            The lowest and the highest reward that can occur: claims are then exact. Or 'unknown': claims are
            then asymptotic.
        delta, epsilon, goal, expect
            As those of :class:`AnytimeElimination`.
        covariates : sequence of str, optional
            Names that forecasts use.
        context, rules, explore, features
            As those of :class:`Personalised`; with `context` or `features` the experiment is personalised.
        window, silence, sticky, reference, holdout, objective, add
            As in :meth:`Experiment.create`; `reference` by its label.
        metrics, guardrails : sequence of dict, optional
            With the parameters of :class:`Metric` and :class:`Guardrail`.
        """
        body = drop_missing(
            key=key,
            arms=list(arms),
            rewards=rewards,
            delta=delta,
            epsilon=epsilon,
            goal=goal,
            expect=expect,
            covariates=covariates,
            context=context,
            rules=rules,
            explore=explore,
            features=features,
            window=window,
            silence=silence,
            sticky=sticky,
            reference=reference,
            holdout=holdout,
            objective=objective,
            add=add,
            metrics=metrics,
            guardrails=guardrails,
        )
        return write_call("/v1/experiments", body)

    def experiments(self) -> list[str]:
        """Return the keys of all experiments."""
        keys: list[str] = []
        after: str | None = ""
        while after is not None:
            page = self._send(pages_call(after))
            keys += page["keys"]
            after = page["next"]
        return keys

    @_sent
    def experiment(self, key: str) -> Call[ExperimentData]:
        """Return the settings and progress of an experiment."""
        return read_call(path_of(key))

    @_sent
    def ask(
        self,
        key: str,
        unit: str | None = None,
        *,
        available: Sequence[str] | None = None,
        covariates: Covariates | None = None,
        context: Covariates | None = None,
        features: Mapping[str, Sequence[float]] | None = None,
    ) -> Call[Proposal]:
        """Return an arm to show."""
        body = drop_missing(
            unit=unit, available=available, covariates=covariates, context=context, features=features
        )
        return write_call(path_of(key, "ask"), body, read=proposal_of)

    @_sent
    def ask_many(
        self,
        key: str,
        count: int | None = None,
        *,
        units: Sequence[str] | None = None,
        available: Sequence[str] | None = None,
        covariates: Sequence[Covariates] | None = None,
        context: Sequence[Covariates] | None = None,
        features: Sequence[Mapping[str, Sequence[float]]] | None = None,
    ) -> Call[list[Proposal]]:
        """Return arms to show, for a count or for units."""
        body = drop_missing(
            count=count,
            units=units,
            available=available,
            covariates=covariates,
            context=context,
            features=features,
        )
        return write_call(path_of(key, "ask-many"), body, read=proposals_of)

    @_sent
    def tell(self, key: str, id: int, reward: Rewards) -> Call[None]:  # noqa: A002
        """Tell the reward of a proposal, or several metrics of it by name."""
        return write_call(path_of(key, "tell"), {"id": id, "reward": reward}, read=nothing)

    @_sent
    def tell_many(self, key: str, ids: Sequence[int], rewards: ManyRewards) -> Call[tuple[Refusal, ...]]:
        """Tell the rewards of several proposals, or several metrics by name; return what was refused."""
        body = {"ids": list(ids), "rewards": plain_rewards(rewards)}
        return write_call(path_of(key, "tell-many"), body, read=refusals_of)

    @_sent
    def edge_plan(self, key: str) -> Call[EdgePlan]:
        """Return the current plan for clients that draw by themselves; :class:`EdgeClient` does so."""
        return read_call(path_of(key, "plan"), EdgePlan.from_json)

    @_sent
    def expose(self, key: str, body: ExposuresData, *, once: str | None = None) -> Call[ExposedData]:
        """Post exposures as the API takes them; `once` is a key by which they are not posted twice."""
        return write_call(path_of(key, "exposures"), dict(body), once)

    @_sent
    def report(self, key: str) -> Call[ReportData]:
        """Return the report: what is known now, and what to do."""
        return read_call(path_of(key, "report"))

    @_sent
    def certificate(self, key: str) -> Call[dict[str, object]]:
        """Return the certificate of the decision, for :func:`orthobandit.verify.verify`."""
        return read_call(path_of(key, "certificate"))

    @_sent
    def add_arms(self, key: str, arms: Sequence[str | DescribedArm]) -> Call[ExperimentData]:
        """Add arms, described as those so far."""
        return write_call(path_of(key, "arms"), {"arms": list(arms)})

    @_sent
    def retire(self, key: str, label: str) -> Call[ExperimentData]:
        """Take an arm out."""
        return write_call(path_of(key, "arms", label, "retire"))

    @_sent
    def pause(self, key: str) -> Call[ExperimentData]:
        """Refuse new proposals until the experiment is resumed."""
        return write_call(path_of(key, "pause"))

    @_sent
    def resume(self, key: str) -> Call[ExperimentData]:
        """Go on after a pause."""
        return write_call(path_of(key, "resume"))

    @_sent
    def stop(self, key: str, reason: str = "") -> Call[ExperimentData]:
        """End an experiment by hand."""
        return write_call(path_of(key, "stop"), {"reason": reason})

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, call: Call[Answer]) -> Answer:
        """Send a request, again after lost connections and while the server is busy; return its answer."""
        for attempt in range(self._retries + 1):
            try:
                response = self._http.request(**_arguments(call))
            except self._httpx.TransportError as error:
                if attempt == self._retries:
                    raise self._lost(error) from error
            else:
                failure = self._failed(response, attempt)
                if failure is not None:
                    raise failure
                if response.is_success:
                    return call.read(response.json())
            time.sleep(self._pause(attempt))
        raise AssertionError("the last attempt returns or raises")


class AsyncClient(_Base):
    """A :class:`Client` whose methods are awaited: the same names, arguments, answers and errors.

    Parameters
    ----------
    address, token, retries, timeout
        As those of :class:`Client`.
    """

    def __init__(
        self, address: str, token: str | None = None, *, retries: int = RETRIES, timeout: float = TIMEOUT
    ) -> None:
        super().__init__(address, token, retries=retries, timeout=timeout)
        self._http = self._httpx.AsyncClient(**self._options)

    create = _awaited(Client.create)
    experiment = _awaited(Client.experiment)
    ask = _awaited(Client.ask)
    ask_many = _awaited(Client.ask_many)
    tell = _awaited(Client.tell)
    tell_many = _awaited(Client.tell_many)
    edge_plan = _awaited(Client.edge_plan)
    expose = _awaited(Client.expose)
    report = _awaited(Client.report)
    certificate = _awaited(Client.certificate)
    add_arms = _awaited(Client.add_arms)
    retire = _awaited(Client.retire)
    pause = _awaited(Client.pause)
    resume = _awaited(Client.resume)
    stop = _awaited(Client.stop)

    async def experiments(self) -> list[str]:
        """Return the keys of all experiments."""
        keys: list[str] = []
        after: str | None = ""
        while after is not None:
            page = await self._send(pages_call(after))
            keys += page["keys"]
            after = page["next"]
        return keys

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _send(self, call: Call[Answer]) -> Answer:
        """Send a request, again after lost connections and while the server is busy; return its answer."""
        for attempt in range(self._retries + 1):
            try:
                response = await self._http.request(**_arguments(call))
            except self._httpx.TransportError as error:
                if attempt == self._retries:
                    raise self._lost(error) from error
            else:
                failure = self._failed(response, attempt)
                if failure is not None:
                    raise failure
                if response.is_success:
                    return call.read(response.json())
            await asyncio.sleep(self._pause(attempt))
        raise AssertionError("the last attempt returns or raises")


def _arguments(call: Call[Any]) -> dict[str, Any]:
    """Return the arguments for httpx; the values of a read go into its address."""
    where = "params" if call.method == "GET" else "json"
    return {"method": call.method, "url": call.path, "headers": call.headers, where: call.json}
