"""Hajjar, Chizat, Giraud, Training integrable parameterizations (2110.15596), as functions."""

from __future__ import annotations
