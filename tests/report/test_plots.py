"""The picture of features: what is drawn, where, on which scale, and what is refused."""

import numpy as np
import pytest
from matplotlib.image import imread

from ibpdist.base.errors import StorageError, UsageError
from ibpdist.report.plots import Strip, draw_strips, strips_figure

IMAGES = [np.arange(6.0) - 2, np.full(6, 3.0)]


def drawn(figure):
    """Arrays, limits and captions of the images of a figure, in order."""
    return [
        (
            axes.images[0].get_array() if axes.images else None,
            axes.images[0].get_clim() if axes.images else None,
        )
        for axes in figure.axes
    ]


def test_every_image_is_drawn_in_its_shape():
    figure = strips_figure([Strip("planted", IMAGES), Strip("found", [IMAGES[1], None])], (2, 3))
    shown = drawn(figure)
    assert len(shown) == 4
    np.testing.assert_array_equal(shown[0][0], IMAGES[0].reshape(2, 3))
    np.testing.assert_array_equal(shown[2][0], IMAGES[1].reshape(2, 3))
    assert shown[3][0] is None
    assert [text.get_text() for text in figure.axes[3].texts] == ["none"]


def test_zero_is_white_and_strips_share_their_scale():
    strips = [
        Strip("a", IMAGES),
        Strip("b", [np.full(6, -5.0)]),
        Strip("c", [np.full(6, 9.0)], own_scale=True),
    ]
    limits = [limit for _, limit in drawn(strips_figure(strips, (2, 3)))]
    assert limits == [(-5, 5), (-5, 5), (-5, 5), (-9, 9)]
    red, green, blue, _ = strips_figure(strips, (2, 3)).axes[0].images[0].to_rgba(0.0)
    assert min(red, green, blue) > 0.95


def test_images_of_zeros_have_a_scale():
    assert drawn(strips_figure([Strip("a", [np.zeros(6)])], (2, 3)))[0][1] == (-1, 1)


def test_labels_captions_and_title_stand_apart():
    strips = [
        Strip("planted", IMAGES * 2, ["diagonal, 1,050 rows"] * 4),
        Strip("also active", IMAGES, ["3 rows", "1 row"]),
    ]
    figure = strips_figure(strips, (2, 3), "Shapes in noisy images")
    figure.draw_without_rendering()
    assert [axes.get_xlabel() for axes in figure.axes] == [*["diagonal, 1,050 rows"] * 4, "3 rows", "1 row"]
    boxes = [text.get_window_extent() for text in figure.texts]
    boxes += [axes.xaxis.label.get_window_extent() for axes in figure.axes]
    boxes += [axes.get_window_extent() for axes in figure.axes]
    page = figure.bbox
    for i, box in enumerate(boxes):
        assert page.x0 <= box.x0 <= box.x1 <= page.x1
        assert page.y0 <= box.y0 <= box.y1 <= page.y1
        assert not any(box.overlaps(other) for other in boxes[:i])


def test_a_file_is_written(tmp_path):
    path = draw_strips(tmp_path / "a.png", [Strip("planted", IMAGES)], (2, 3), "title")
    pixels = imread(path)
    assert pixels.shape[0] > 100
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 6
    assert draw_strips(tmp_path / "a.svg", [Strip("planted", IMAGES)], (2, 3)).read_text().startswith("<?xml")


def test_nothing_to_draw_is_an_empty_page(tmp_path):
    assert draw_strips(tmp_path / "a.png", [], (2, 3)).exists()


def test_refusals_are_sentences(tmp_path):
    with pytest.raises(UsageError, match="an image of 6 cells is not 3 x 3"):
        draw_strips(tmp_path / "a.png", [Strip("planted", IMAGES)], (3, 3))
    with pytest.raises(StorageError, match="cannot be written"):
        draw_strips(tmp_path / "no" / "a.png", [Strip("planted", IMAGES)], (2, 3))
    with pytest.raises(UsageError, match=r"a\.doc"):
        draw_strips(tmp_path / "a.doc", [Strip("planted", IMAGES)], (2, 3))
    assert list(tmp_path.iterdir()) == []
