// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pictures: rings, sparklines, bars. */

/*
 * Okabe and Ito's colours, which every kind of colour vision tells apart; dark: text on them is. As more backends than
 * colours are common, each comes with a number.
 */
const COLORS = [
	["#0072b2"], ["#e69f00", "dark"], ["#009e73", "dark"], ["#cc79a7", "dark"], ["#56b4e9", "dark"], ["#d55e00", "dark"],
	["#6b5fb5"], ["#b5a400", "dark"],
];
const color = (i) => COLORS[i % COLORS.length][0];
const ink = (i) => COLORS[i % COLORS.length][1] || "";

const CENTER = 120;

function spot(radius, turn) {
	const a = 2 * Math.PI * turn;
	return (CENTER + radius * Math.sin(a)).toFixed(2) + " " + (CENTER - radius * Math.cos(a)).toFixed(2);
}

/* A piece of a ring, clockwise from the top; from and to count in turns. */
function piece(inner, outer, from, to) {
	if (to - from > 0.9999)
		return piece(inner, outer, from, from + 0.5) + piece(inner, outer, from + 0.5, from + 0.9999);
	const far = to - from > 0.5 ? 1 : 0;
	return `M${spot(outer, from)}A${outer} ${outer} 0 ${far} 1 ${spot(outer, to)}` +
		`L${spot(inner, to)}A${inner} ${inner} 0 ${far} 0 ${spot(inner, from)}Z`;
}

/* Runs of equal values: [value, from, to) */
function runs(list) {
	const found = [];
	for (let i = 0, from = 0; i <= list.length; i++)
		if (i === list.length || list[i] !== list[from]) {
			if (i > from)
				found.push([list[from], from, i]);
			from = i;
		}
	return found;
}

/* The hash space itself, as it is cut up: one path a backend, made anew only when the tables have changed. */
const sampled = new Map();
function sampledRing(pool, ring, revision) {
	const known = sampled.get(pool.name);
	if (known && known.revision === revision)
		return known.paths;
	const paths = [];
	if (ring && ring.owners.length) {
		const n = ring.owners.length, of = new Map();
		for (const [owner, from, to] of runs(ring.owners))
			of.set(owner, (of.get(owner) || "") + piece(99, 109, from / n, to / n));
		for (const [owner, d] of of)
			paths.push([owner, d]);
		const moving = runs(ring.moved).filter(([m]) => m).map(([, from, to]) => piece(111.5, 115, from / n, to / n));
		if (moving.length)
			paths.push(["moving", moving.join("")]);
	}
	sampled.set(pool.name, { revision, paths });
	return paths;
}

/* pool: as `show` says it; hot: index of the backend that is pointed at, or -1. */
function ringPicture(pool, ring, revision, hot, healthy, point) {
	const parts = [];
	let at = 0;
	pool.backends.forEach((b, i) => {
		if (!(b.share > 0))
			return;
		const from = at, middle = at + b.share / 2;
		at += b.share;
		parts.push(h("path", {
			key: "piece" + i, class: "piece" + (i === hot ? " on" : ""), d: piece(60, 94, from, at), fill: color(i),
			onmouseenter: () => point(i), onmouseleave: () => point(-1), onclick: () => point(i, true),
		}, h("title", null, `${b.name}: ${percent(b.share)}`)));
		if (b.share > 0.035) {
			const [x, y] = spot(77, middle).split(" ");
			parts.push(h("text", { key: "number" + i, class: "number " + ink(i), x, y }, String(i + 1)));
		}
	});
	const outer = sampledRing(pool, ring, revision).map(([owner, d]) => owner === "moving" ?
		h("path", { class: "arc moving", d }, h("title", null, "moving: established flows may still go to a former owner")) :
		h("path", {
			class: "arc" + (owner === hot ? " on" : "") + (owner < 0 ? " nobody" : ""), d,
			fill: owner < 0 ? null : color(owner),
		}));
	const names = pool.backends.filter((b) => b.share > 0).slice(0, 12).map((b) => `${b.name} ${percent(b.share)}`);
	const label = `Ring of pool ${pool.name}: ` + (names.join(", ") || "no backend takes flows");
	return h("svg", { class: "ring" + (hot >= 0 ? " hot" : ""), viewBox: "0 0 240 240", role: "img", "aria-label": label },
		parts.length ? null : h("path", { class: "nobody", d: piece(60, 94, 0, 1), "fill-rule": "evenodd" }),
		outer, parts,
		hot >= 0 && pool.backends[hot] ? [
			h("text", { class: "big", x: CENTER, y: CENTER + 3 }, percent(pool.backends[hot].share)),
			h("text", { class: "small", x: CENTER, y: CENTER + 20 }, pool.backends[hot].name.slice(0, 18)),
		] : [
			h("text", { class: "big", x: CENTER, y: CENTER + 3 }, healthy.text),
			h("text", { class: "small", x: CENTER, y: CENTER + 20 }, healthy.label),
		]);
}

function sparkline(values, label) {
	const w = 120, high = 30, top = Math.max(...values, 1e-9);
	if (values.length < 2)
		return h("svg", { class: "spark", viewBox: `0 0 ${w} ${high}`, "aria-hidden": "true" });
	const x = (i) => (w * i / (values.length - 1)).toFixed(1), y = (v) => (high - 1 - (high - 3) * v / top).toFixed(1);
	const line = values.map((v, i) => x(i) + " " + y(v));
	return h("svg", {
		class: "spark", viewBox: `0 0 ${w} ${high}`, preserveAspectRatio: "none", role: "img", "aria-label": label,
	},
		h("path", { class: "fill", d: `M0 ${high}L${line.join("L")}L${w} ${high}Z` }),
		h("path", { class: "stroke", d: "M" + line.join("L") }));
}

/* mark: where it should end; fill: its colour, where that is not the level's. */
function bar(fraction, level, label, mark, fill) {
	const clamp = (f) => (100 * Math.min(1, Math.max(0, f))).toFixed(1) + "%";
	return h("div", { class: "bar " + (level || ""), role: "img", "aria-label": label },
		h("i", { style: { width: clamp(fraction), ...(fill ? { background: fill } : {}) } }),
		mark === undefined ? null : h("b", { style: { left: clamp(mark) } }));
}

function swatch(i, takes) {
	return h("span", {
		class: "swatch " + (takes ? ink(i) : "none"), "aria-hidden": "true", style: { background: takes ? color(i) : "none" },
	}, String(i + 1));
}
