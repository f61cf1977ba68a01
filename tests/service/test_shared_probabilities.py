"""Proposals of one plan are written with their probabilities once, and read as if each had its own."""

import json

from orthobandit import ArmSet, Experiment
from orthobandit.service.api.assignments import (
    NO_PROBABILITIES,
    ProposalAnswer,
    ProposalsAnswer,
    dump_proposals,
)


def test_proposals_are_written_as_the_model_would():
    labels = ["plain", f"tricky {NO_PROBABILITIES}", 'quote " and \\ é']
    live = Experiment.memory(ArmSet.one_hot(3, labels), rewards=(0, 1), holdout=0.2, key="5" * 64)
    found = [*live.ask_many(30), live.ask(available=[1]), live.ask(available=["plain"])]
    assert {one.arm for one in found} == {0, 1, 2}
    answer = ProposalsAnswer(proposals=[ProposalAnswer.of(one) for one in found])
    assert json.loads(dump_proposals(found)) == json.loads(answer.model_dump_json())
    assert dump_proposals([]) == b'{"proposals":[]}'
