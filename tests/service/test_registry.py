"""The experiments of a database, kept open."""

from dataclasses import dataclass

import pytest

from inside.service import Registry
from orthobandit import ArmSet, Experiment
from orthobandit.errors import ConflictError, DamagedStoreError, StorageError, UnknownExperimentError
from orthobandit.policy import AnytimeElimination

ARMS = ArmSet.one_hot(2)


@pytest.fixture
def registry(tmp_path):
    made = Registry(tmp_path / "all.db")
    yield made
    made.close()


def test_experiments_made_in_python_are_served(registry, tmp_path):
    Experiment.create(tmp_path / "all.db", ARMS, rewards="unknown", name="Any name: it's fine").close()
    assert registry.page(10) == ["Any name: it's fine"]
    assert registry.get("Any name: it's fine").ask().id == 1


def test_a_registry_that_cannot_be_opened_keeps_no_connection(tmp_path, monkeypatch):
    (tmp_path / "notes.txt").write_text("some notes that are dear to me\n" * 50)
    released = []
    monkeypatch.setattr("orthobandit.service.registry.release_engine", released.append)
    with pytest.raises(DamagedStoreError):
        Registry(tmp_path / "notes.txt")
    assert len(released) == 1
    released[0].dispose()


def test_an_experiment_is_opened_once(registry):
    made = registry.create("page", ARMS, AnytimeElimination(rewards=(0, 1)))
    assert registry.get("page") is made


def test_one_that_was_opened_while_it_was_made_is_the_one_that_stays(registry, monkeypatch):
    create, opened = Experiment.create, []

    def slow(*given, **settings):
        made = create(*given, **settings)
        opened.append(registry.get("page"))
        return made

    monkeypatch.setattr(Experiment, "create", slow)
    assert registry.create("page", ARMS, AnytimeElimination(rewards=(0, 1))) is opened[0]
    assert registry.get("page").ask().id == 1


@dataclass(frozen=True)
class Foreign(AnytimeElimination):
    """A policy of another package."""


def test_what_python_alone_can_open_is_said_so(registry, tmp_path):
    Experiment.create(tmp_path / "all.db", ARMS, Foreign(), rewards="unknown", name="foreign").close()
    with pytest.raises(ConflictError, match=r"'foreign' can be used from Python only: .*Foreign"):
        registry.get("foreign")


def test_unknown_experiments_are_named_without_the_file(registry):
    for call in (registry.get, registry.settings):
        with pytest.raises(UnknownExperimentError, match=r"^there is no experiment 'x'; create it") as caught:
            call("x")
        assert ".db" not in str(caught.value)


def test_a_database_that_cannot_be_made_is_an_error(tmp_path):
    with pytest.raises(StorageError, match="there is no folder"):
        Registry(tmp_path / "no such folder" / "all.db")
