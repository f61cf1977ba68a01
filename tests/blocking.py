"""Twins for coroutines, called as their sync twins are: one suite can then test both."""

import inspect


class Blocking:
    """Calls the methods of an asynchronous object, and waits for what they return.

    Parameters
    ----------
    made : object
        Whose coroutines are waited for.
    runner : asyncio.Runner
        Whose loop they run in.
    """

    def __init__(self, made, runner):
        self.made, self.runner = made, runner

    def __getattr__(self, name):
        found = getattr(self.made, name)
        if not callable(found):
            return found

        def call(*arguments, **named):
            return self.waited(found(*arguments, **named))

        return call

    def waited(self, value):
        """Return a value, awaited if it is a coroutine, and again as a twin if it is one."""
        if inspect.iscoroutine(value):
            value = self.runner.run(value)
        return Blocking(value, self.runner) if type(value) is type(self.made) else value


class Maker:
    """Calls the class methods of an asynchronous class as those of its twin."""

    def __init__(self, kind, runner):
        self.kind, self.runner = kind, runner

    def __getattr__(self, name):
        found = getattr(self.kind, name)
        return lambda *arguments, **named: Blocking(self.runner.run(found(*arguments, **named)), self.runner)
