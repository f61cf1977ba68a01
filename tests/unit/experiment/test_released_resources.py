"""An experiment that cannot be begun or opened holds on to nothing."""

import pytest

from inside.experiment import SQLStore
from orthobandit import ArmSet, Experiment
from orthobandit.errors import ExperimentExistsError, ParameterError, UnknownExperimentError
from orthobandit.policy import UniformAllocation

ARMS = ArmSet.one_hot(2)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda where: Experiment.create(where, ARMS, rewards="unknown"), ExperimentExistsError),
        (lambda where: Experiment.open(where, name="nobody"), UnknownExperimentError),
        (lambda where: Experiment.open(where, UniformAllocation()), ParameterError),
    ],
)
def test_a_store_of_which_nothing_comes_is_closed(call, error, tmp_path, monkeypatch):
    where, closed = tmp_path / "log.db", []
    Experiment.create(where, ARMS, rewards="unknown").close()
    close = SQLStore.close
    monkeypatch.setattr(SQLStore, "close", lambda store: (closed.append(store), close(store)))
    with pytest.raises(error):
        call(where)
    assert len(closed) == 1
