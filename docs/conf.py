"""Sphinx settings: python -m pip install ".[docs]" && python -m sphinx -W docs docs/_build."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import tpcalc

project = "tpcalc"
author = "The tpcalc authors"
project_copyright = "2026, The tpcalc authors"
version = release = tpcalc.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # an attribute that is a property is described once
napoleon_custom_sections = ["Shapes", "Source"]

html_theme = "furo"
html_title = f"tpcalc {version}"


def plain_stars(app, what, name, obj, options, lines):
    """Docstrings write ``n**2`` and ``|x|`` as plain text: keep those signs from being markup."""
    in_example = False
    for index, line in enumerate(lines):
        in_example = bool(line.strip()) and (in_example or line.lstrip().startswith(">>>"))
        if in_example:
            continue
        pieces = re.split(r"(``.*?``)", line)
        pieces[::2] = [re.sub(r"([*|])", r"\\\1", piece) for piece in pieces[::2]]
        lines[index] = "".join(pieces)


def setup(app):
    app.connect("autodoc-process-docstring", plain_stars, priority=100)  # before napoleon (500)
