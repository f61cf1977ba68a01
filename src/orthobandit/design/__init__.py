"""Designs: which arms to play how often, with a certificate."""

from orthobandit.design.anchor import anchor_design
from orthobandit.design.base import Design
from orthobandit.design.centred import centred_design
from orthobandit.design.contrast import contrast_design
from orthobandit.design.earning import earning_design
from orthobandit.design.optimal import g_optimal_design

__all__ = [
    "Design",
    "anchor_design",
    "centred_design",
    "contrast_design",
    "earning_design",
    "g_optimal_design",
]
