"""Small images of features: files that other programs read, clear at zero."""

import base64
import io

import matplotlib.image
import numpy as np
import pytest

from ibpdist.report.pictures import ABOVE, BELOW, LARGEST, data_uri, painted, png, shrunk


def read(address: str) -> np.ndarray:
    kind, _, body = address.partition(",")
    assert kind == "data:image/png;base64"
    return np.rint(matplotlib.image.imread(io.BytesIO(base64.b64decode(body)), format="png") * 255)


def test_another_program_reads_it_back() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (5, 7, 4)).astype(np.uint8)
    found = matplotlib.image.imread(io.BytesIO(png(pixels)), format="png")
    np.testing.assert_array_equal(np.rint(found * 255), pixels)


def test_zero_is_clear_and_the_limit_opaque() -> None:
    found = read(data_uri([0.0, 2.0, -2.0, 1.0, 9.0, np.nan], (2, 3), 2.0))
    assert found[..., 3].tolist() == [[0, 255, 255], [128, 255, 0]]
    assert found[0, 1, :3].tolist() == list(ABOVE)
    assert found[0, 2, :3].tolist() == list(BELOW)


def test_nothing_is_divided_by_nothing() -> None:
    assert painted(np.zeros((2, 2)), 0.0)[..., 3].max() == 0


@pytest.mark.parametrize("shape", [(96, 96), (97, 40), (1, 500), (300, 200)])
def test_large_images_shrink_and_keep_their_mean(shape: tuple[int, int]) -> None:
    image = np.random.default_rng(2).normal(size=shape)
    small = shrunk(image)
    assert max(small.shape) <= LARGEST
    by = -(-max(shape) // LARGEST)
    assert small.shape == tuple(-(-size // by) for size in shape)
    inside = image[:by, :by].mean() if min(shape) >= by else None
    if inside is not None:
        assert small[0, 0] == pytest.approx(inside)
    np.testing.assert_allclose(shrunk(np.full(shape, 3.0)), 3.0)


def test_a_small_image_stays_as_it_is() -> None:
    image = np.arange(6.0).reshape(2, 3)
    assert shrunk(image) is image


def test_a_page_of_large_images_stays_small() -> None:
    draw = np.random.default_rng(3)
    sizes = [len(data_uri(draw.normal(size=512 * 512), (512, 512), 3.0)) for _ in range(2)]
    assert max(sizes) * 60 < 4_000_000
