"""Images on a device, the order in which trials see them, and the classes that outputs name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.engine.device.devices import load_torch
from tpcalc.results.images import Images

# Tells the stream of the order from those of weights, which have the width in this place.
_ORDER = 2**32 - 1


@dataclass(frozen=True)
class Pixels:
    """Inputs and labels of one part of a data set, as tensors."""

    inputs: Any  # of shape (images, d)
    labels: Any  # of shape (images,)

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, start: int, stop: int, dtype: Any) -> tuple[Any, Any]:
        """Consecutive images in a number format."""
        return self.inputs[start:stop].to(dtype), self.labels[start:stop]


def load_pixels(images: Images, device: Any) -> tuple[Pixels, Pixels]:
    """The training and the test images on a device."""
    torch = load_torch()

    def moved(array: Any) -> Any:
        # The arrays may not be written to, which torch cannot promise; on the CPU they are copied.
        return torch.tensor(array, device=device)

    return (
        Pixels(moved(images.train), moved(images.train_labels)),
        Pixels(moved(images.test), moved(images.test_labels)),
    )


class Batches:
    """The batches of one trial: all images in a new order in each epoch.

    A batch is a function of seed, trial and step, so nothing about the order needs to be kept to
    resume. What is left of an epoch after its last full batch is dropped.

    Args:
        pixels: The training images.
        batch: Images in a batch.
        seed: The seed.
        trial: Number of the trial.

    Raises:
        UsageError: Fewer images than a batch has.
    """

    def __init__(self, pixels: Pixels, batch: int, seed: int, trial: int) -> None:
        checks.whole(batch, "batch", most=len(pixels), hint="There are no more training images.")
        self._pixels = pixels
        self._batch = batch
        self._words = (seed, trial)
        self._epoch = -1
        self._order: Any = None

    def __call__(self, step: int, dtype: Any) -> tuple[Any, Any]:
        """Inputs and labels of a step."""
        epoch, position = divmod(step, len(self._pixels) // self._batch)
        if epoch != self._epoch:
            words = [*self._words, _ORDER, epoch]
            generator = np.random.Generator(np.random.SFC64(np.random.SeedSequence(words)))
            order = generator.permutation(len(self._pixels))
            torch, device = load_torch(), self._pixels.labels.device
            self._order, self._epoch = torch.from_numpy(order).to(device), epoch
        chosen = self._order[position * self._batch : (position + 1) * self._batch]
        inputs = self._pixels.inputs.index_select(0, chosen)
        return inputs.to(dtype), self._pixels.labels.index_select(0, chosen)


def classes(outputs: Any) -> Any:
    """For each row the most probable class; among equally probable ones the smallest number.

    Probabilities softmax(f) are compared in single precision, whatever the outputs are of. So a
    network whose outputs are of size 1e-9 names class 0, as where accuracies are computed from
    probabilities. Libraries leave open which of equal numbers wins; here it does not depend on
    the device.

    Source: Hajjar, Chizat, Giraud, Table 3, where networks that learn nothing have the share of
        the digit 0, as in their published code.

    Example::

        classes(torch.tensor([[0.0, 0.0], [0.0, 1.0]]))  # 0 and 1
    """
    torch = load_torch()
    count = outputs.shape[1]
    numbers = torch.arange(count, device=outputs.device)
    wide = outputs.to(torch.float64)
    relative = (wide - wide.amax(dim=1, keepdim=True)).exp().to(torch.float32)
    return torch.where(relative == 1, numbers, count).amin(dim=1)


def accuracy(outputs: Any, labels: Any) -> float:
    """The share of rows whose class is the right one.

    Example::

        accuracy(torch.zeros(4, 10), torch.tensor([0, 3, 0, 1]))  # 0.5
    """
    torch = load_torch()
    if not bool(torch.isfinite(outputs).all()):
        return float("nan")
    right = int((classes(outputs) == labels).sum())
    return right / len(labels)
