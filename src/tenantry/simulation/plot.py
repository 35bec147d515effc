"""Line charts as SVG, in panels: plain text, no library, the same bytes for the same numbers.

The colours are told apart by most people who see colours differently (Okabe and Ito, 2008).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#000000")
GREY = "#bbbbbb"

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP_X, _GAP_Y = 300, 130, 46, 64, 62, 58


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: its name, its values at ``x`` = 0, 1, 2, … times the chart's step, and its look."""

    name: str
    values: Sequence[float]
    colour: str
    width: float = 1.2
    area: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart. ``step``: the distance of two values in x. ``top``: the largest y, or None to fit."""

    title: str
    lines: Sequence[Line]
    step: float = 1.0
    top: float | None = None


def chart(title: str, panels: Sequence[Panel], *, columns: int = 3, x: str = "s") -> str:
    """An SVG of all panels, with one legend of the names in the first panel. Pure."""
    rows = (len(panels) + columns - 1) // columns
    columns = min(columns, len(panels))
    width = _LEFT + columns * (_WIDTH + _GAP_X) - _GAP_X + 20
    height = _TOP + rows * (_HEIGHT + _GAP_Y)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="11" fill="#222">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        _text(_LEFT, 20, title, size=14),
        *_legend(panels[0].lines if panels else ()),
    ]
    for place, panel in enumerate(panels):
        left = _LEFT + place % columns * (_WIDTH + _GAP_X)
        parts += _panel(panel, left, _TOP + 20 + place // columns * (_HEIGHT + _GAP_Y), x)
    return "\n".join([*parts, "</svg>\n"])


def _panel(panel: Panel, left: float, top: float, x: str) -> list[str]:
    most = panel.top or max((value for line in panel.lines for value in line.values), default=1.0) or 1.0
    count = max((len(line.values) for line in panel.lines), default=1)
    bottom, across = top + _HEIGHT, max(1, count - 1) * panel.step
    parts = [_text(left, top - 8, panel.title, size=12)]
    for tick in _ticks(most):
        y = bottom - tick / most * _HEIGHT
        parts.append(f'<path d="M{left} {y:.1f}h{_WIDTH}" stroke="#eee"/>')
        parts.append(_text(left - 5, y + 4, f"{tick:g}", anchor="end"))
    for tick in _ticks(across):
        parts.append(_text(left + tick / across * _WIDTH, bottom + 15, f"{tick:g} {x}", anchor="middle"))
    for line in panel.lines:
        parts.append(_curve(line, (left, bottom), (_WIDTH / max(1, count - 1), _HEIGHT / most)))
    parts.append(f'<path d="M{left} {top}v{_HEIGHT}h{_WIDTH}" fill="none" stroke="#888"/>')
    return parts


def _curve(line: Line, origin: tuple[float, float], scale: tuple[float, float]) -> str:
    (left, bottom), (across, up) = origin, scale
    points = [
        f"{left + at * across:.1f} {bottom - min(value * up, _HEIGHT):.1f}"
        for at, value in enumerate(line.values)
    ]
    if not points:
        return ""
    if line.area:
        end = left + (len(points) - 1) * across
        return f'<path d="M{left} {bottom}L{"L".join(points)}L{end:.1f} {bottom}Z" fill="{line.colour}"/>'
    return f'<path d="M{"L".join(points)}" fill="none" stroke="{line.colour}" stroke-width="{line.width}"/>'


def _legend(lines: Sequence[Line]) -> list[str]:
    parts, left = [], float(_LEFT)
    for line in lines:
        parts.append(f'<rect x="{left:.0f}" y="34" width="14" height="6" fill="{line.colour}"/>')
        parts.append(_text(left + 19, 41, line.name))
        left += 38 + 6.4 * len(line.name)
    return parts


def _ticks(most: float) -> list[float]:
    """Round numbers from 0 to ``most``: four or five of them."""
    unit = 10.0 ** floor(log10(most / 4.0))
    step = next(unit * factor for factor in (1, 2, 5, 10) if most / (unit * factor) <= 5.0)
    return [step * place for place in range(int(most / step + 1e-9) + 1)]


def _text(x: float, y: float, text: str, *, size: int = 11, anchor: str = "start") -> str:
    look = f'font-size="{size}" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{escape(text)}</text>'
