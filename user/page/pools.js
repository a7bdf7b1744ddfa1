// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pools and their backends. */

const BACKENDS_SHOWN = 40;
const backendKey = (pool, b) => [pool, b.name, b.address, b.identity || ""].join("\u001f");

/* How a backend is, in one sign: what hurts comes first. */
function condition(b, health) {
	if (b.health === "down")
		return ["bad", "bad", "down"];
	if (b.state === "drain" || b.state === "leaving")
		return ["drain", "warn", b.cut ? b.state + ", cut" : b.state];
	if (b.state === "maint")
		return ["off", "off", "maint"];
	if (health && health.waiting)
		return ["unchecked", "warn", "waits for its check"];
	if (health && health.factor < 1)
		return ["good", "good", "slow start, " + Math.round(100 * health.factor) + " %"];
	return b.health === "unchecked" ? ["unchecked", "off", "unchecked"] : ["good", "good", "up"];
}

function drainLine(pool, b, flows) {
	if (b.safe_to_remove_in === null || b.state === "up" || b.state === "maint")
		return null;
	const wait = b.safe_to_remove_in, all = Math.max(pool.settle_after || 0, wait, 1);
	const parts = flows ? [plural(flows, "flow") + " left"] : []; // those that began before the move are in no table
	if (wait && b.last_old_packet !== null)
		parts.push("last old packet " + span(b.last_old_packet) + " ago");
	parts.push(wait ? "safe to remove in " + span(wait) : "safe to remove now");
	const text = parts.join(" \u00b7 ");
	const quiet = 1 - wait / all;
	return h("div", { class: "drain" },
		bar(quiet, wait ? "warn" : "good", "quiet for " + percent(quiet) + " of the time"),
		h("span", { class: wait ? "" : "good-text" }, text));
}

function fact(name, value, whole) {
	return value === null || value === undefined || value === "" ? null :
		h("div", { class: whole ? "whole" : "" }, h("dt", null, name), h("dd", null, value));
}

function backendDetails(b, health, stats, series) {
	return h("dl", { class: "details" },
		fact("Address", b.address), fact("Zone", b.zone), fact("Identity", b.identity !== b.name ? b.identity : null),
		fact("Weight", String(b.weight)), fact("Points on the ring", whole(b.points)),
		fact("Packets", whole(stats.packets || 0)), fact("Bytes", bytes(stats.bytes || 0)),
		fact("Flows tracked", whole(stats.flows || 0)),
		health && [
			fact("Check", health.checked === null ? "no result yet" : span(health.checked) + " ago" +
				(health.latency === null ? "" : ", took " + (1000 * health.latency).toFixed(1) + " ms")),
			fact(health.status === "down" ? "Down for" : "So for", span(health.since)),
			fact("Went down, came up", `${health.downs}\u00d7, ${health.ups}\u00d7`),
			fact("Flapping", health.held ? "held down until its check is steady" : null),
			fact("Last result", health.reason, true),
		],
		series.length > 1 ? h("div", { class: "whole" }, h("dt", null, "Packets/s, last minutes"),
			h("dd", null, sparkline(series, "packets a second of " + b.name))) : null);
}

function shareCell(b, i, expected, top) {
	const takes = b.points > 0, label = `share ${percent(b.share)}, by weight ${percent(expected)}`;
	return h("td", { class: "share whole" }, h("span", null, percent(b.share)),
		takes ? h("span", { class: "note" }, " of " + percent(expected) + " by weight") : null,
		takes || b.share > 0 ? bar(b.share / top, "", label, expected / top, color(i)) : null);
}

function backendRows(view, pool, b, i, expected, top) {
	const key = backendKey(pool.name, b), open = view.open.has(key), hot = view.hot === pool.name + i;
	const health = view.health.get(key), stats = view.stats.get(key) || {}, rate = view.rates.get(key) || {};
	const [shape, level, text] = condition(b, health);
	const rows = [h("tr", {
		key, class: hot || open ? "on" : "",
		onmouseenter: () => view.point(pool.name, i), onmouseleave: () => view.point(null),
	},
	h("td", null, h("button", {
		class: "backend-name", type: "button", "aria-expanded": String(open), title: "details",
		onclick: () => view.toggle(key), onfocus: () => view.point(pool.name, i), onblur: () => view.point(null),
	}, swatch(i, b.share > 0),
	h("span", null, h("span", { class: "name" }, b.name), h("span", { class: "sub" }, b.address)))),
	h("td", { class: "right" }, badge(shape, level, text)),
	shareCell(b, i, expected, top),
	h("td", { class: "n", "data-label": "pkt/s" }, rate.packets === undefined ? "\u2013" : joined(short(rate.packets))),
	h("td", { class: "n right", "data-label": "flows" }, joined(short(stats.flows || 0))))];
	const drain = drainLine(pool, b, stats.flows || 0);
	const failing = b.health === "down" && health && health.reason;
	if (open || drain || failing)
		rows.push(h("tr", { key: key + "more", class: "more" }, h("td", { class: "whole", colspan: 5 },
			failing && !open ? h("p", { class: "bad-text note" }, failing,
				h("span", { class: "note" }, " \u00b7 for " + span(health.since))) : null,
			drain, open ? backendDetails(b, health, stats, view.series.get(key) || []) : null)));
	return rows;
}

/* Where not all are shown, those that something is the matter with are. */
function shownBackends(view, pool) {
	const all = pool.backends.map((b, i) => [b, i]);
	if (all.length <= BACKENDS_SHOWN || view.all.has(pool.name))
		return all;
	const ill = ([b]) => b.health === "down" || b.state !== "up" ? 0 : 1;
	return all.sort((x, y) => ill(x) - ill(y) || x[1] - y[1]).slice(0, BACKENDS_SHOWN);
}

function poolFacts(pool, health) {
	const badges = [];
	if (health && health.all_down)
		badges.push(badge("bad", "bad", "none healthy: all are used"));
	else if (health && health.panic)
		badges.push(badge("warn", "warn", "panic: too few are healthy, all are used"));
	if (pool.moved > 0)
		badges.push(badge("drain", "warn", percent(pool.moved) + " moving" +
			(pool.settles_in ? ", settles in " + span(pool.settles_in) : "")));
	return badges;
}

function poolCard(view, data, pool) {
	const health = view.poolHealth.get(pool.name);
	const takes = pool.backends.filter((b) => b.points > 0);
	const weights = takes.reduce((sum, b) => sum + b.weight, 0);
	const expected = (b) => b.points > 0 && weights ? b.weight / weights : 0;
	const top = Math.max(...pool.backends.map((b) => Math.max(b.share, expected(b))), 1e-9) * 1.02;
	const hot = pool.backends.findIndex((_, i) => view.hot === pool.name + i);
	const ring = (data.rings || []).find((r) => r.pool === pool.name);
	const checked = health && health.checked;
	const center = checked ? { text: health.healthy + "/" + health.takers, label: "healthy" } :
		{ text: String(takes.length), label: takes.length === 1 ? "backend takes flows" : "backends take flows" };
	const shown = shownBackends(view, pool);
	return h("section", { class: "card", key: pool.name, "aria-label": "Pool " + pool.name, id: "pool-" + pool.name },
		h("header", null, h("h2", null, "Pool " + pool.name), poolFacts(pool, health),
			h("span", { class: "note" },
				pool.placement === "ring" ?
					`ring \u00b7 ${plural(pool.points, "point")} \u00b7 ${pool.vnodes} per weight` : pool.placement)),
		h("div", { class: "pool" },
			h("figure", null,
				ringPicture(pool, ring, data.show.revision, hot, center, (i, click) => click ?
					view.toggle(backendKey(pool.name, pool.backends[i])) : view.point(i < 0 ? null : pool.name, i)),
				h("figcaption", { class: "key" }, h("span", null, "inside: share of new flows"),
					ring ? h("span", null, "outside: the hash space") : null,
					pool.moved > 0 ? h("span", { class: "warn-text" }, "edge: moving") : null)),
			h("div", null, h("table", { class: "table backends" },
				h("thead", null, h("tr", null, h("th", { scope: "col" }, "Backend"), h("th", { scope: "col" }, "State"),
					h("th", { scope: "col" }, "Share of new flows"), h("th", { class: "n", scope: "col" }, "Packets/s"),
					h("th", { class: "n", scope: "col" }, "Flows"))),
				h("tbody", null, shown.map(([b, i]) => backendRows(view, pool, b, i, expected(b), top)))),
			shown.length < pool.backends.length ?
				h("button", { class: "all", type: "button", onclick: () => view.showAll(pool.name) },
					"Show all " + whole(pool.backends.length) + " backends") : null)));
}
