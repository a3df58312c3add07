"""Sets of inputs have the second moments that they say."""

from __future__ import annotations

import numpy as np
import pytest

from tpcalc.errors import UsageError
from tpcalc.nonlinearity.tensors.surrogates import elementlike_inputs, gaussian_inputs

pytestmark = pytest.mark.torch


def test_gaussian_inputs_have_a_centre() -> None:
    x = gaussian_inputs(400, 500, 1.7, 0.4, seed=2).numpy()
    gram = x @ x.T / 500
    assert np.mean(np.diag(gram)) == pytest.approx(1.7, rel=0.05)
    assert np.mean(gram[np.triu_indices(400, 1)]) == pytest.approx(0.4, rel=0.3)
    assert x.var(0).mean() == pytest.approx(1.3, rel=0.02)


def test_what_no_inputs_have_is_refused() -> None:
    with pytest.raises(UsageError, match="at most 5"):
        elementlike_inputs(6, 5)
    with pytest.raises(UsageError, match=r"c is 1\.0"):
        gaussian_inputs(5, 5, 1.0, 1.0)
    with pytest.raises(UsageError, match="at least 1"):
        gaussian_inputs(0, 5)
    with pytest.raises(UsageError, match="q is 0"):
        gaussian_inputs(3, 5, 0.0)
