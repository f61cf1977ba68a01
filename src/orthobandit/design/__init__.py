"""Designs: which arms to play how often, with a certificate."""

from collections.abc import Callable, Mapping

from orthobandit.design.anchor import anchor_design
from orthobandit.design.base import Design
from orthobandit.design.centred import centred_design
from orthobandit.design.contrast import contrast_design
from orthobandit.design.earning import earning_design
from orthobandit.design.fast import contrast_weights
from orthobandit.design.optimal import g_optimal_design

# Designs by name, for the command line, for policies and for studies.
DESIGNS: Mapping[str, Callable[..., Design]] = {
    "centred": centred_design,
    "anchor": anchor_design,
    "contrast": contrast_design,
    "g-optimal": g_optimal_design,
}

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
