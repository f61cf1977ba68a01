"""Whether a figure can be printed: no text overlaps or is cut, axes can be read, nothing covers curves."""

from itertools import chain, combinations

import numpy as np

SMALLEST = 100  # pixels of an axis at 100 dots per inch, in either direction
TOUCH = 1.0  # pixels by which boxes of texts may overlap: they include some air


def flaws(figure):
    """Return what is wrong with a figure, in words."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    boxes = {}
    for text in texts(figure):
        box = text.get_window_extent(renderer)
        boxes[f"{text.get_text()!r} at ({box.x0:.0f}, {box.y0:.0f})"] = box
    whole = figure.bbox
    found = [
        f"{name} is cut"
        for name, box in boxes.items()
        if box.x0 < whole.x0 - TOUCH
        or box.y0 < whole.y0 - TOUCH
        or box.x1 > whole.x1 + TOUCH
        or box.y1 > whole.y1 + TOUCH
    ]
    found += [
        f"{one} overlaps {other}"
        for (one, a), (other, b) in combinations(boxes.items(), 2)
        if min(a.x1, b.x1) - max(a.x0, b.x0) > TOUCH and min(a.y1, b.y1) - max(a.y0, b.y0) > TOUCH
    ]
    for axes in figure.axes:
        box = axes.get_window_extent(renderer)
        if axes.axison and min(box.width, box.height) < SMALLEST * figure.dpi / 100:
            found.append(f"axes of {box.width:.0f} × {box.height:.0f} pixels")
        for what, cover in covers(axes, renderer):
            found += [f"{what} covers {name}" for name in under(axes, cover)]
    return found


def covers(axes, renderer):
    """Return the names and boxes of what lies over the curves of axes: insets with their labels, a legend."""
    found = [("an inset", inset.get_tightbbox(renderer)) for inset in axes.child_axes]
    if axes.axison and axes.get_legend():
        found.append(("the legend", axes.get_legend().get_window_extent(renderer)))
    return found


def under(axes, box):
    """Return the names of the curves and bands that run under a box; long straight parts are filled in."""
    lines = [(line.get_label(), line.get_transform().transform(line.get_xydata())) for line in axes.lines]
    bands = [
        ("a band", band.get_transform().transform(path.vertices))
        for band in axes.collections
        for path in band.get_paths()
    ]
    found = []
    for name, points in chain(lines, bands):
        if len(points) > 1:
            steps = np.linspace(0, 1, 20)[:, np.newaxis, np.newaxis]
            points = (points[:-1] + steps * (points[1:] - points[:-1])).reshape(-1, 2)
        is_in = (points[:, 0] > box.x0) & (points[:, 0] < box.x1)
        is_in &= (points[:, 1] > box.y0) & (points[:, 1] < box.y1)
        if is_in.any():
            found.append(name)
    return found


def texts(figure):
    """Return the texts that are seen: titles, labels, legends, notes, and labels of ticks within view."""
    found = [text for legend in figure.legends for text in legend.get_texts()]
    for axes in all_axes(figure):
        if axes.get_legend():
            found += axes.get_legend().get_texts()
        if not axes.axison:
            continue
        found += [axes.title, axes._left_title, axes._right_title, *axes.texts]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            found.append(axis.label)
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if low <= tick.get_loc() <= high:
                    found.append(tick.label1)
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def all_axes(figure):
    """Return all axes with their insets."""
    return [one for axes in figure.axes for one in (axes, *axes.child_axes)]
