"""Without torch there is nothing to collect here: every file imports it."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["*.py"]
