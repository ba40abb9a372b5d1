"""One matrix, two layouts: the product is the same whatever the number of rows."""

import pytest
import torch

from engine.matrix import MANY_ROWS, Matrix


@pytest.mark.parametrize("num_rows", [0, 1, 2, 9, MANY_ROWS - 1, MANY_ROWS, MANY_ROWS + 1])
def test_a_product_is_the_same_for_any_number_of_rows(num_rows: int) -> None:
    generator = torch.Generator().manual_seed(num_rows)
    plain = torch.randn(48, 80, generator=generator)
    rows = torch.randn(num_rows, 48, generator=generator)
    torch.testing.assert_close(Matrix(plain).times(rows), rows @ plain, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("num_rows", [1, 9, MANY_ROWS])
def test_a_product_is_added_to_its_target(num_rows: int) -> None:
    generator = torch.Generator().manual_seed(num_rows)
    plain, rows, target = (
        torch.randn(shape, generator=generator) for shape in ((48, 80), (num_rows, 48), (num_rows, 80))
    )
    expected = target + rows @ plain
    Matrix(plain).add_product(rows, target)
    torch.testing.assert_close(target, expected, rtol=1e-5, atol=1e-5)


def test_a_transposed_view_is_a_matrix_like_any_other() -> None:
    plain = torch.randn(80, 48, generator=torch.Generator().manual_seed(1)).t()
    rows = torch.randn(9, 48, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(Matrix(plain).times(rows), rows @ plain, rtol=1e-5, atol=1e-5)
