"""Recipes with hand-derived exponents, by number."""

from __future__ import annotations

from modules.block_cases import GPTS, GROUPS, OTHERS
from modules.case import Case
from modules.mlp_cases import BIASED, MLPS

CASES: dict[str, Case] = {case.name: case for case in (*MLPS, *GPTS, *OTHERS, *BIASED, *GROUPS)}
