"""Load as an SVG heat map: partitions across, the largest tenants down, all tenants together in the last row.

A cell is dark in proportion to what it carries against the fullest cell of its kind (tenants, or totals), so
that a hot partition is seen whatever made it hot.
"""

import re
from collections.abc import Mapping
from math import inf
from xml.sax.saxutils import escape

from tenantry.partition.load import load_of
from tenantry.partition.model import Layout
from tenantry.partition.placement import Placement

_LEFT, _TOP, _ROW, _GAP = 190, 66, 22, 12
_WIDTH = 900
_SHADES = ("#f3f5f7", "#d6e6f2", "#a9cfe5", "#6cb0d6", "#3a8abf", "#1c629e", "#0b3c6d")
_OTHERS = "all tenants"
_UNTELLABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even escaped; a tenant's id may."""


def heat_map(layout: Layout, traffic: Mapping[str, float], *, title: str = "Load", tenants: int = 20) -> str:
    """The map as a whole SVG document, of the ``tenants`` with most traffic. Pure.

    The same input gives the same bytes. It needs no script, font or style from elsewhere, and each cell tells
    its figures in a tooltip.
    """
    total = sum(traffic.values()) or 1.0
    largest = sorted(traffic, key=lambda each: (-traffic[each], each))[:tenants]
    rows = [(each, _spread(layout, each, traffic[each])) for each in largest]
    fullest = max((rate for _, row in rows for rate in row.values()), default=0.0) or 1.0
    sums = load_of(layout, traffic)
    height = _TOP + _ROW * (len(rows) + 1) + _GAP + 44
    parts = [_opening(title, height), *_axis(layout.active)]
    for place, (tenant, row) in enumerate(rows):
        parts += _row(tenant, row, layout.active, (_TOP + place * _ROW, fullest, total))
    bottom = _TOP + len(rows) * _ROW + _GAP
    parts += _row(_OTHERS, sums, layout.active, (bottom, max(sums.values()) or 1.0, total))
    mean = total / len(layout.active)
    told = f"fullest partition: {max(sums.values()) / mean:.2f} times the mean of {len(sums)} partitions"
    return "\n".join([*parts, _text(_LEFT, bottom + _ROW + 22, told), "</svg>\n"])


def _spread(layout: Layout, tenant: str, rate: float) -> dict[int, float]:
    used = Placement(layout).partitions_of(tenant, inf)
    return {each: rate / len(used) for each in used}


def _opening(title: str, height: int) -> str:
    width = _LEFT + _WIDTH + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" font-family="system-ui, sans-serif" font-size="12" fill="#22303c">\n'
        f"<title>{_escaped(title)}</title>\n"
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n'
        f'<text x="20" y="28" font-size="16" font-weight="600">{_escaped(title)}</text>'
    )


def _axis(partitions: tuple[int, ...]) -> list[str]:
    step, cell = max(1, -(-len(partitions) // 24)), _WIDTH / len(partitions)
    marks = [
        _text(_LEFT + (place + 0.5) * cell, _TOP - 8, str(partitions[place]), "middle")
        for place in range(0, len(partitions), step)
    ]
    return [_text(_LEFT - 10, _TOP - 8, "partition", "end"), *marks]


def _row(
    name: str, row: Mapping[int, float], partitions: tuple[int, ...], scale: tuple[float, float, float]
) -> list[str]:
    y, fullest, total = scale
    cell = _WIDTH / len(partitions)
    label = name if len(name) <= 26 else name[:25] + "…"
    parts = [_text(_LEFT - 10, y + 15, label, "end")]
    for place, partition in enumerate(partitions):
        rate = row.get(partition, 0.0)
        told = f"{name}, partition {partition}: {rate:,.1f} ({rate / total:.1%} of all)"
        parts.append(
            f'<rect x="{_LEFT + place * cell:.2f}" y="{y:.0f}" width="{max(cell - 1, cell * 0.8):.2f}" '
            f'height="{_ROW - 2}" fill="{_shade(rate / fullest)}"><title>{_escaped(told)}</title></rect>'
        )
    return parts


def _shade(part: float) -> str:
    return _SHADES[0] if part <= 0 else _SHADES[1 + min(5, int(part * 6))]


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_escaped(words)}</text>'


def _escaped(words: str) -> str:
    return escape(_UNTELLABLE.sub("\ufffd", words))
