"""Designs: which arms to play how often, with a certificate."""

from orthobandit.design.base import Design
from orthobandit.design.compiled_contrasts import contrast_weights
from orthobandit.design.criteria import (
    DESIGNS,
    anchor_design,
    centred_design,
    contrast_design,
    earning_design,
    g_optimal_design,
)

__all__ = [
    "DESIGNS",
    "Design",
    "anchor_design",
    "centred_design",
    "contrast_design",
    "contrast_weights",
    "earning_design",
    "g_optimal_design",
]
