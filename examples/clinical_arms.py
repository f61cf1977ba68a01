"""Clinical arms: doses of a drug, while the patients who come get sicker.

Four doses and a placebo; a patient responds or does not. The response is a curve in the dose, so arms
inform about each other: features are the dose and its square. Over the trial sicker patients are referred,
and the chance to respond falls by 0.3 in every arm. Doses that are proven worse are closed as soon as that is
certain, with exact intervals that allow for every look; patients who come later are spared them. An equal
split would send four of five patients to a dose that is not the best, to the last day.

`python examples/clinical_arms.py` takes about 30 s and draws docs/gallery/clinical_arms.png.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthobandit import AnytimeElimination, ArmSet, Experiment

Array = NDArray[np.float64]

TARGET = Path(__file__).parents[1] / "docs" / "gallery" / "clinical_arms.png"
DOSES = np.array([0.0, 10.0, 20.0, 30.0, 40.0])  # milligrams
ARMS = ArmSet(np.column_stack([DOSES, DOSES**2]), ["placebo", "10 mg", "20 mg", "30 mg", "40 mg"])
RESPONSE = 0.35 + 0.032 * DOSES - 0.00055 * DOSES**2  # chance of the first patient
PATIENTS, SICKER = 3000, 0.3
DELTA = 0.05


@dataclass
class Trial:
    """A finished trial: who got what, and the report at the end."""

    shown: list[int] = field(default_factory=list)
    closed: dict[str, int] = field(default_factory=dict)  # after how many patients
    report: Any = None

    @property
    def spared(self) -> float:
        """Responses more than an equal split would have had, in expectation."""
        return float(np.sum(RESPONSE[self.shown]) - len(self.shown) * RESPONSE.mean())


def run(seed: int = 8, patients: int = PATIENTS) -> Trial:
    """Run the trial, patient by patient."""
    random, trial, now = np.random.default_rng(seed), Trial(), [0.0]
    policy = AnytimeElimination(delta=DELTA, rewards=(0, 1), goal="earn")
    study = Experiment.memory(
        ARMS, policy, rewards=(0, 1), clock=lambda: now[0], key=f"{seed:032x}", reference="placebo"
    )
    for patient in range(patients):
        now[0] += 60.0
        proposal = study.ask()
        chance = RESPONSE[proposal.arm] - SICKER * patient / patients
        study.tell(proposal.id, float(random.random() < chance))
        trial.shown.append(proposal.arm)
        if patient % 50 == 49:
            for arm in study.report().arms:
                if not arm.is_active:
                    trial.closed.setdefault(arm.label, patient + 1)
    trial.report = study.report()
    return trial


def draw(trial: Trial) -> Any:
    """Return the figure: patients by arm, and what is known of each dose at the end."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    colours = ("#000000", "#56B4E9", "#009E73", "#D55E00", "#CC79A7")
    for arm, (label, colour) in enumerate(zip(ARMS.labels, colours, strict=True)):
        left.plot(np.cumsum(np.array(trial.shown) == arm), color=colour, label=label)
        if label in trial.closed:
            at = trial.closed[label]
            left.plot(at, np.sum(np.array(trial.shown[:at]) == arm), "x", color=colour, ms=9, mew=2)
    left.set(xlabel="patients in the trial", ylabel="patients in the arm", xlim=(0, len(trial.shown)))
    left.set_title("× where a dose is closed", loc="left", fontsize="medium")
    left.legend(frameon=False, fontsize="small")
    trial.report.plot(right)
    truth = RESPONSE - RESPONSE[0]
    right.plot(truth[:0:-1], range(len(ARMS) - 1), "|", color="#D55E00", ms=14, mew=2.5, label="truth")
    right.set_xlabel("responses a patient, more than on placebo")
    right.set_title(f"{1 - DELTA:.0%} intervals that hold at every look", loc="left", fontsize="medium")
    right.legend(frameon=False, fontsize="small", loc="upper left")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
    return figure


def main(target: Path = TARGET, **size: int) -> None:
    """Run the trial, print the report, and draw it."""
    trial = run(**size)
    print(trial.report)
    print(
        f"\nabout {trial.spared:.0f} more responses than with an equal split of {len(trial.shown):,} patients"
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    draw(trial).savefig(target, dpi=100)
    print(f"figure: {target}")


if __name__ == "__main__":
    main()
