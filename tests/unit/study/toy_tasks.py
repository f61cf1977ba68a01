"""Tasks for the engine's tests: they leave a mark each time they run."""

import os
import signal
import uuid
from pathlib import Path


def mark(settings):
    """Compute the square and leave one file a call."""
    folder = Path(settings["folder"])
    (folder / f"{settings['number']}-{uuid.uuid4().hex}").touch()
    return {"squares": {"number": [settings["number"]], "square": [settings["number"] ** 2]}}


def interrupt_at(settings):
    """As `mark`, but Ctrl-C is pressed at one number while a file says so."""
    if (Path(settings["folder"]) / f"stop-{settings['number']}").exists():
        raise KeyboardInterrupt
    return mark(settings)


def die_once(settings):
    """As `mark`, but the worker is killed the first time."""
    dying = Path(settings["folder"]) / f"dying-{settings['number']}"
    if settings["number"] == 2 and not dying.exists():
        dying.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return mark(settings)


def die(settings):
    """Kill the worker."""
    os.kill(os.getpid(), signal.SIGKILL)
