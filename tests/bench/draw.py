# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Pictures of figures, as SVG: bars, and curves over a logarithmic axis."""
import math
from xml.sax.saxutils import escape

# Okabe and Ito's colours, which the common kinds of colour blindness keep apart.
BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#b3b7bd"
FONT = "font-family=\"'DejaVu Sans', Verdana, Arial, sans-serif\" font-size=\"12\""


class Picture:
    def __init__(self, width, height, title):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                      f'viewBox="0 0 {width} {height}" role="img" aria-labelledby="title" {FONT}>',
                      f'<title id="title">{escape(title)}</title>',
                      f'<rect width="{width}" height="{height}" fill="#fff"/>']

    def text(self, x, y, text, anchor="start", more=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(str(text))}</text>')

    def line(self, x1, y1, x2, y2, colour="#ddd", width=1, more=""):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
                          f'stroke-width="{width}" {more}/>')

    def bar(self, x, y, width, height, colour):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height}" '
                          f'fill="{colour}"/>')

    def path(self, points, colour):
        self.parts.append('<polyline fill="none" stroke-width="2" stroke="' + colour + '" points="' +
                          " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>')
        self.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]

    def write(self, path):
        path.write_text("\n".join([*self.parts, "</svg>"]) + "\n", encoding="utf-8")


def step(most):
    """A round number of which four to eight make up most."""
    size = 10 ** math.floor(math.log10(most / 4))
    return next(size * factor for factor in (1, 2, 5, 10) if most / (size * factor) <= 8)


def number(value):
    return f"{value:,.10g}"


def bars(path, title, unit, rows):
    """rows: (label, value, spread (least, most) or None, target or None, colour)."""
    left, width, height = 300, 560, 22
    most = max(max(value, target or 0, min(spread[1], 1.3 * value) if spread else 0)
               for _, value, spread, target, _ in rows) * 1.1
    p = Picture(left + width + 20, 60 + height * len(rows), title)
    p.text(10, 20, title, more='font-weight="bold"')
    bottom = 40 + height * len(rows)
    for i in range(int(most / step(most)) + 1):
        x = left + i * step(most) / most * width
        p.line(x, 32, x, bottom)
        p.text(x, bottom + 14, number(i * step(most)), "middle")
    p.text(left + width + 15, 20, unit, "end")
    for i, (label, value, spread, target, colour) in enumerate(rows):
        y = 36 + i * height
        p.text(left - 8, y + 13, label, "end")
        p.bar(left, y + 2, value / most * width, 14, colour)
        if spread:
            p.line(left + max(spread[0], 0) / most * width, y + 9, left + min(spread[1], most) / most * width, y + 9,
                   "#1a1a1a")
        if target:
            x = left + target / most * width
            p.line(x, y, x, y + 18, RED, 2)
        p.text(left + max(value, min(spread[1], most) if spread else 0) / most * width + 5, y + 13, f"{value:.2f}")
    p.write(path)


def curves(path, title, unit, panels):
    """panels: (name of what varies, [(number, value, least, most)]); side by side, two in a row, from zero up."""
    wide, high = 440, 250
    rows = (len(panels) + 1) // 2
    p = Picture(wide * 2, 40 + high * rows, title)
    p.text(10, 20, title, more='font-weight="bold"')
    for i, (name, points) in enumerate(panels):
        panel(p, (wide * (i % 2), 40 + high * (i // 2), wide, high), name, unit, points)
    p.write(path)


def panel(p, place, name, unit, points):
    x0, y0, wide, high = place
    left, right, top, bottom = x0 + 50, x0 + wide - 25, y0 + 15, y0 + high - 45
    most = max(value for _, value, _, _ in points) * 1.15
    low, top_number = math.log(points[0][0]), math.log(points[-1][0])
    spread = (top_number - low) or 1
    for i in range(int(most / step(most)) + 1):
        y = bottom - i * step(most) / most * (bottom - top)
        p.line(left, y, right, y)
        p.text(left - 6, y + 4, number(i * step(most)), "end")
    placed = []
    last = -1e9
    for count, value, least, most_seen in points:
        x = left + (math.log(count) - low) / spread * (right - left)
        y = bottom - value / most * (bottom - top)
        placed.append((x, y))
        p.line(x, bottom - least / most * (bottom - top), x, bottom - min(most_seen, most) / most * (bottom - top),
               BLUE)
        if x - last > 44:
            p.text(x, bottom + 16, number(count), "middle")
            last = x
    p.path(placed, BLUE)
    p.text((left + right) / 2, bottom + 34, f"{name} (logarithmic)", "middle")
    p.text(left, top - 4, unit)
