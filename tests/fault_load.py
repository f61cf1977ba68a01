"""Writers that go on through faults, and know what was acknowledged: all of it must be there."""

import time
from contextlib import contextmanager, suppress
from threading import Lock, Thread

import httpx

from experiment_samples import outcomes_of
from inside.service import check
from orthobandit import Experiment
from orthobandit.errors import OrthobanditError
from orthobandit.service import Client

WRITERS = 4
VISITORS = 8  # who write to a third experiment without keys, so that their requests share entries of its log


class Load:
    """Threads that ask and tell without pause.

    Values of one experiment add up, so that one that is lost or counted twice shows; units of another come
    once, and must have one proposal; those of a third are asked and told one by one, and again if no answer
    came.

    Parameters
    ----------
    address : str
    """

    def __init__(self, address):
        self._address, self._is_over, self._lock = address, False, Lock()
        self.sums, self.units, self.rewards, self.failures = {}, {}, {}, []
        self.shown, self.told = {}, {}
        with Client(address, retries=60) as client:
            client.create("sales", ["old", "new"], rewards=[0, 1e6], window="7d", add=True)
            client.create("page", ["a", "b", "c"], rewards=[0, 1])
            client.create("visits", ["a", "b", "c"], rewards=[0, 1])
            for number in range(1, WRITERS + 1):
                assert client.ask("sales", unit=f"user {number}").id == number
        self._threads = [Thread(target=self._write, args=(number,)) for number in range(1, WRITERS + 1)]
        self._threads += [Thread(target=self._visit, args=(number,)) for number in range(VISITORS)]

    @property
    def count(self):
        """How many writes were acknowledged."""
        return sum(self.sums.values()) + len(self.rewards) + len(self.told)

    def _write(self, writer):
        try:
            with Client(self._address, retries=200, timeout=60) as client:
                step = 0
                while not self._is_over:
                    step += 1
                    client.tell("sales", writer, 1.0)
                    self.sums[writer] = self.sums.get(writer, 0) + 1
                    units = [f"{writer}/{step}/{place}" for place in range(3)]
                    shown = client.ask_many("page", units=units)
                    values = {one.id: float(one.arm == 1) for one in shown}
                    with self._lock:
                        self.units |= {unit: one.id for unit, one in zip(units, shown, strict=True)}
                    client.tell_many("page", list(values), list(values.values()))
                    with self._lock:
                        self.rewards |= values
        except OrthobanditError as error:
            self.failures.append(error)

    def _visit(self, visitor):
        with httpx.Client(base_url=f"{self._address}/v1/experiments/visits", timeout=60) as http:
            step = 0
            while not self._is_over and not self.failures:
                step += 1
                unit = f"{visitor}/{step}"
                found = self._sent(http, "/ask", {"unit": unit})
                if found is None:
                    return
                self.shown[unit] = found["id"]
                reward = float(found["arm"] == 1)
                if self._sent(http, "/tell", {"id": found["id"], "reward": reward}) is None:
                    return
                self.told[found["id"]] = reward

    def _sent(self, http, path, body):
        """Send until there is an answer; return it, or None if it is not what it should be."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            with suppress(httpx.TransportError):
                answer = http.post(path, json=body)
                if answer.status_code == 200:
                    return answer.json()
                if answer.status_code not in (502, 503):
                    self.failures.append(answer.text)
                    return None
            time.sleep(0.05)
        self.failures.append(f"{path} of {body} was not answered")
        return None

    @contextmanager
    def running(self):
        """Write while the block lasts."""
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._is_over = True
            for thread in self._threads:
                thread.join()

    def wait_for(self, more):
        """Wait until so many more writes were acknowledged."""
        before, end = self.count, time.monotonic() + 120
        while self.count < before + more:
            assert not self.failures, self.failures
            assert time.monotonic() < end, "nothing is acknowledged any more"
            time.sleep(0.01)

    def check(self, where):
        """Check that all that was acknowledged is there once, and that the state is that of the log."""
        assert not self.failures
        with Experiment.open(where, name="sales") as sales:
            found = {one.proposal.number: one.rewards["reward"] for one in outcomes_of(sales)}
            assert found == self.sums
        with Experiment.open(where, name="page") as page:
            table = outcomes_of(page)
        found = {one.proposal.number: one.rewards["reward"] for one in table if one.rewards}
        # A writer ends between its ask and its tell at most when it is told to: all it did was acknowledged.
        assert found == self.rewards
        assert {one.proposal.unit: one.proposal.number for one in table} == self.units
        with Experiment.open(where, name="visits") as visits:
            table = outcomes_of(visits)
        assert {one.proposal.number: one.rewards["reward"] for one in table if one.rewards} == self.told
        assert {one.proposal.unit: one.proposal.number for one in table} == self.shown
        assert check(where) == []  # draws, states and numbers of plans, computed again
