"""Activations as they are typed."""

from __future__ import annotations

from typing import Any


def activation(text: str) -> Any:
    """What a typed activation stands for: a name or a formula as it is, ``file.py:name`` loaded.

    Args:
        text: What was typed.

    Raises:
        StudyError: The file cannot be run, or holds none.

    Example:
        >>> activation("gelu")
        'gelu'
    """
    from tpcalc.study.program_file import load_activation, split_model

    place = split_model(text)
    return text if place is None else load_activation(*place)[1]
