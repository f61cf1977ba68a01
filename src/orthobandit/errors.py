"""What can go wrong, by name.

Every error raised on purpose derives from :class:`OrthobanditError`. Errors about an argument are also
:class:`ValueError`, so code that knows nothing of this package still catches them. An error leaves every
object as it was: arguments are checked before anything is changed.
"""

from collections.abc import Callable, Mapping
from functools import partial
from numbers import Number


class Argument:
    """An argument that a message mentions, so that each surface can spell it in its own way.

    Parameters
    ----------
    name : str
    *value : object
        What it is, or should be, set to; nothing to mention the argument alone.
    ending : str
        What follows a name without a value in Python.

    Attributes
    ----------
    name : str
    python : str
        As Python spells it; also what `str` returns.
    shell : str or None
        The value as words of a shell; None for a switch and for no value.
    is_off : bool
        Whether it is False, for which a command has another switch, if any.

    Examples
    --------
    >>> str(Argument("missing", "zero")), str(Argument("time")), str(Argument("caps", ending=""))
    ("missing='zero'", 'time=', 'caps')
    >>> Argument("bounds", (0, 1)).shell, Argument("split", {"a": 0.2, "b": 0.8}).shell
    ('0 1', 'a=0.2 b=0.8')
    """

    # Words and not the value itself: errors travel between processes, and values need not be able to.
    def __init__(self, name: str, *value: object, ending: str = "=") -> None:
        self.name = name
        self.python = f"{name}={_python_words(value[0])}" if value else f"{name}{ending}"
        self.shell = _shell_words(value[0]) if value and not isinstance(value[0], bool) else None
        self.is_off = bool(value) and value[0] is False

    def __str__(self) -> str:
        return self.python


def _python_words(value: object) -> str:
    if isinstance(value, type):
        return value.__name__
    # NumPy's numbers are shown as numbers.
    return str(value) if isinstance(value, Number) else repr(value)


def _shell_words(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}={_shell_words(entry)}" for name, entry in value.items())
    if isinstance(value, tuple | list):
        return " ".join(map(_shell_words, value))
    return str(value)


class OrthobanditError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(OrthobanditError, ValueError):
    """An argument cannot be used; the message names it, its value and the remedy.

    Parameters
    ----------
    *words : str or Argument
        The message, in pieces.
    field : str
        The argument that is wrong; by default the one that the message begins with.

    Attributes
    ----------
    words : tuple of str or Argument
    field : str
        Empty if the error is about no single argument.

    Examples
    --------
    >>> error = InputError(Argument("window", -1.0), " needs a time column; name it with ", Argument("time"))
    >>> str(error), error.field
    ('window=-1.0 needs a time column; name it with time=', 'window')
    """

    def __init__(self, *words: str | Argument, field: str = "") -> None:
        super().__init__("".join(map(str, words)))
        self.words = words
        self.field = field
        if not field and words and isinstance(words[0], Argument):
            self.field = words[0].name


class FeatureError(InputError):
    """Features are empty, ragged, non-numeric or not finite."""


class LabelError(InputError):
    """Labels are duplicated or do not match the arms."""


class FileFormatError(InputError):
    """A file cannot be read as what it should hold."""


class ProbabilityError(InputError):
    """Probabilities are negative, not finite, or do not sum to one."""


class RewardError(InputError):
    """A reward is not a finite number."""


class TallyError(InputError):
    """A tally does not fit its plan, its arms or the tally it is merged with."""


class ParameterError(InputError):
    """A setting lies outside the range in which it means something."""


class ForecastError(ParameterError):
    """A forecast is not a finite number."""


class SpecError(InputError):
    """A study is described wrongly; nothing was run.

    Attributes
    ----------
    keys : tuple of str
        Where in the description the mistake is.
    """

    def __init__(self, message: str | InputError, keys: tuple[str, ...] = ()) -> None:
        super().__init__(*message.words if isinstance(message, InputError) else (message,))
        self.keys = keys


class SourceError(OrthobanditError):
    """A log cannot be reached or read to its end: the engine that holds it failed or went away."""


class StudyError(OrthobanditError):
    """A study could not be finished; what was finished is kept."""


class OutputError(OrthobanditError):
    """A result could not be written; the message says where and why. No half of a file is left."""


class CertificateError(InputError, OutputError):
    """There is no certificate of what was asked for; the message says why, and what to ask for instead."""


class ExperimentError(OrthobanditError):
    """Base of what can go wrong with a live experiment; it goes on as if the call had not been made."""


class ExperimentExistsError(ExperimentError):
    """There is already an experiment of this name."""


class UnknownExperimentError(ExperimentError):
    """There is no experiment of this name, or no file."""


class UnknownProposalError(ExperimentError):
    """No such proposal was drawn."""


class ClosedError(ExperimentError):
    """The experiment or its store is closed, or the time for this call has passed."""


class CopyError(ExperimentError, TypeError):
    """A live experiment cannot be pickled or copied; the message says what to do instead."""


class ConflictError(ExperimentError):
    """The call contradicts what is already on record."""


class StorageError(ExperimentError):
    """A store cannot be read or written: disk full, no permission, held by another; nothing was changed."""


class ForkError(StorageError):
    """A process that was forked during a write cannot write to that file; the message says what to do."""


class DamagedStoreError(StorageError):
    """What a store holds is not what was written to it."""


class VersionError(ExperimentError):
    """A newer release wrote it, or one before 0.5; the message names the release that opens it."""


class ServiceError(OrthobanditError):
    """A server refused a request, or could not be reached.

    Attributes
    ----------
    status : int or None
        Of the answer; None if there was none.
    kind : str
        The kind of problem, e.g. ``"forbidden"``.
    """

    def __init__(self, message: str, *, status: int | None = None, kind: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind

    def __reduce__(self) -> tuple[Callable[[str], "ServiceError"], tuple[str]]:
        return partial(ServiceError, status=self.status, kind=self.kind), (str(self),)


class OrthobanditWarning(UserWarning):
    """Base of every warning of this package: the result stands, but something is not as it may seem."""


class DamagedFileWarning(OrthobanditWarning):
    """A file of finished work was damaged; what it held is computed again."""


class NotStoredWarning(OrthobanditWarning):
    """Finished work could not be kept; the run goes on, but could not go on from there another time."""


class InputWarning(OrthobanditWarning):
    """An input can be used, but is perhaps not what was meant."""


class MissingExtraError(OrthobanditError, ImportError):
    """A package that only some features need is not installed; the message says how to get it."""


class DesignError(OrthobanditError):
    """A design could not be certified to the tolerance asked for.

    Attributes
    ----------
    gap : float
        The smallest optimality gap that was certified.
    tolerance : float
        The gap that was asked for.
    """

    def __init__(self, message: str, *, gap: float, tolerance: float) -> None:
        super().__init__(message)
        self.gap = gap
        self.tolerance = tolerance

    def __reduce__(self) -> tuple[Callable[[str], "DesignError"], tuple[str]]:
        # Exceptions are rebuilt from their positional arguments when another process sends them back.
        return partial(DesignError, gap=self.gap, tolerance=self.tolerance), (str(self),)
