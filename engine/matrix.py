"""A weight matrix that multiplies well whatever the number of rows. Knows nothing about what the rows mean."""

import torch

# From here on a plain product is as fast as the packed one, for it packs the matrix itself and that no longer shows.
MANY_ROWS = 256


class Matrix:
    """fp32 [in, out] on one device. On a CPU it is held twice: as it is, and packed for oneDNN.

    One row (a decode) reads the plain matrix as fast as memory gives it. Two to some hundred rows (the end of a prompt
    whose prefix was a hit, decodes of several requests) take 0.5–0.6 of the plain product's time with the packed one.
    """

    def __init__(self, plain: torch.Tensor) -> None:
        self.plain = plain
        self._packed = _packed(plain)

    def times(self, rows: torch.Tensor) -> torch.Tensor:
        """[R, in] to [R, out]."""
        if not self._suits_packed(rows):
            return rows @ self.plain
        product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(rows, self._packed, None, "none", [], "")
        return product

    def add_product(self, rows: torch.Tensor, target: torch.Tensor) -> None:
        """`target` [R, out] += rows [R, in] times the matrix."""
        if self._suits_packed(rows):
            target.add_(self.times(rows))
        else:
            target.addmm_(rows, self.plain)

    def _suits_packed(self, rows: torch.Tensor) -> bool:
        return self._packed is not None and 1 < len(rows) < MANY_ROWS


def _packed(plain: torch.Tensor) -> torch.Tensor | None:
    """None where PyTorch was built without oneDNN, or for another device."""
    has_onednn: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]  # torch types it not
    if plain.device.type != "cpu" or not has_onednn:
        return None
    packed: torch.Tensor = torch.ops.mkldnn._reorder_linear_weight(plain.t().contiguous(), MANY_ROWS)
    return packed
