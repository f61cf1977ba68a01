"""What stored states consist of, by format: names of all fields and how deep their numbers are nested.

``python tests/state_formats.py`` writes the description of the present format to ``state_formats.json``. That
is right only while no release has that format; afterwards raise ``STATE_FORMAT`` in
``orthobandit/_foundation/release.py`` first, and let states of the format before still be read.
"""

import json
from pathlib import Path

from experiment_samples import ledger_of
from inside._foundation import STATE_FORMAT
from orthobandit import AnytimeElimination, ArmSet, Experiment, Guardrail, Metric
from orthobandit.policy import named_policy

FILE = Path(__file__).with_name("state_formats.json")
# Those that take long to compile have the fields of their memory in a named tuple, which is what they dump.
POLICIES = {
    "anytime": {},
    "explore": {"rounds": 100},
    "fixed-budget": {"budget": 100},
    "sbe": {},
    "sp-bai": {},
    "uniform": {},
}
NUMBERED = ("plans", "pending", "bucket", "open")  # keys of these are numbers, not names


def shape_of(value, name=""):
    """Return names and nesting of plain values, without the values."""
    if isinstance(value, dict):
        if name in NUMBERED:
            return {"number": shape_of(next(iter(value.values())))} if value else {}
        return {key: shape_of(one, key) for key, one in sorted(value.items())}
    if isinstance(value, list):
        return [shape_of(value[0])] if value else []
    return "text" if isinstance(value, str) else "none" if value is None else "number"


def sample_state():
    """Return the state of an experiment that has some of everything."""
    experiment = Experiment.memory(
        ArmSet.one_hot(3),
        rewards=(0, 1),
        key="0" * 64,
        window=60.0,
        holdout=0.1,
        metrics=[Metric("seconds")],
        guardrails=[Guardrail("seconds", 1.0)],
        clock=lambda: 5.0,
    )
    for place in range(12):
        shown = experiment.ask_many(10, available=[0, 1] if place % 4 == 3 else None)
        told = shown if place < 11 else shown[:5]
        ids = [one.id for one in told]
        rewards = [float(one.id % 3 == one.arm) for one in told]
        experiment.tell_many(ids, {"reward": rewards, "seconds": [1.0 + one.arm for one in told]})
    return ledger_of(experiment).to_json()


def described():
    """Return the description of all states."""
    arms = ArmSet.one_hot(3)
    found = {"experiment": shape_of(sample_state())}
    for name, settings in POLICIES.items():
        policy = named_policy(name, **settings)
        found[name] = shape_of(policy.dump(policy.start(arms)))
    many = AnytimeElimination(pairs="leader")
    found["anytime, pairs with leaders"] = shape_of(many.dump(many.start(arms)))
    return found


def main():
    """Write down the present format."""
    kept = json.loads(FILE.read_text()) if FILE.exists() else {}
    kept[str(STATE_FORMAT)] = described()
    FILE.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
