"""The paper's figures, its successor's tables, scaling checks and what goes beyond: a named section each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from orthobandit.reproduction.section import Section
from orthobandit.reproduction.sections.contextual import PERSONALISED_TABLES
from orthobandit.reproduction.sections.coverage import COVERAGE
from orthobandit.reproduction.sections.errors import FIGURE_3, FIGURE_4
from orthobandit.reproduction.sections.gaps import GAPS
from orthobandit.reproduction.sections.many_arms import MANY_ARMS
from orthobandit.reproduction.sections.pac import PAC
from orthobandit.reproduction.sections.precision import PRECISION
from orthobandit.reproduction.sections.ratios import EARNING, ROBUSTNESS, ROBUSTNESS_SMALL_GAP
from orthobandit.reproduction.sections.regret import FIGURE_1, FIGURE_2
from orthobandit.reproduction.sections.samples import SMALL_GAP_10, SMALL_GAP_20, SPHERE
from orthobandit.reproduction.sections.scaling import SCALING
from orthobandit.reproduction.sections.survivors import SURVIVORS

GROUPS: Mapping[str, Sequence[Section]] = {
    "The paper's figures": (FIGURE_1.section(), FIGURE_2.section(), FIGURE_3, FIGURE_4),
    "The successor's tables": (SMALL_GAP_10.section(), SMALL_GAP_20.section(), SPHERE.section()),
    "The theorems, one by one": (SCALING, GAPS, MANY_ARMS, PAC, SURVIVORS, PRECISION),
    "Beyond the paper": (
        EARNING.section(),
        ROBUSTNESS.section(),
        ROBUSTNESS_SMALL_GAP.section(),
        COVERAGE,
    ),
    "Personalised rounds": [table.section() for table in PERSONALISED_TABLES],
}
SECTIONS: Mapping[str, Section] = {
    section.name: replace(section, group=group) for group, sections in GROUPS.items() for section in sections
}
