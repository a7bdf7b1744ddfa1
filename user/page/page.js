// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The whole: asks for the status again and again, and shows it. */

const EVERY_MS = 1000, RETRY_MS = 3000, SERIES = 120;

const view = {
	data: null, paused: false, lost: null, changed: 0, clock: null,
	open: new Set(), all: new Set(), hot: null,
	packets: [], bits: [], series: new Map(), verdictRates: new Map(),
	health: new Map(), poolHealth: new Map(), stats: new Map(), rates: new Map(), serviceRates: new Map(),
	toggle(key) {
		if (!this.open.delete(key))
			this.open.add(key);
		draw();
	},
	showAll(name) {
		this.all.add(name);
		draw();
	},
	point(pool, i) {
		const hot = pool === null ? null : pool + i;
		if (hot !== this.hot) {
			this.hot = hot;
			draw();
		}
	},
};

function push(list, value) {
	list.push(value);
	if (list.length > SERIES)
		list.shift();
}

const byBackend = (list) => new Map((list || []).map((b) => [backendKey(b.pool, b), b]));
const byName = (list) => new Map((list || []).map((x) => [x.name, x]));

function noteVerdicts(before, data) {
	const seconds = before && before.stats && data.stats ? (data.clock_ms - before.clock_ms) / 1000 : 0;
	view.verdictRates = new Map(seconds > 0 ? Object.entries(data.stats.verdicts).map(([name, n]) =>
		[name, Math.max(0, n - (before.stats.verdicts[name] || 0)) / seconds]) : []);
}

/* Takes a status in. */
function take(data) {
	const before = view.data;
	view.lost = null;
	if (before && before.clock_ms === data.clock_ms)
		return;
	view.changed = performance.now();
	noteVerdicts(before, data);
	view.data = data;
	const rates = data.rates || {}, stats = data.stats || {};
	view.health = byBackend((data.health || {}).backends);
	view.poolHealth = byName((data.health || {}).pools);
	view.stats = byBackend(stats.backends);
	view.rates = byBackend(rates.backends);
	view.serviceRates = byName(rates.services);
	if (!data.rates)
		return;
	push(view.packets, rates.services.reduce((n, s) => n + s.packets, 0));
	push(view.bits, rates.services.reduce((n, s) => n + 8 * s.bytes, 0));
	const series = new Map();
	for (const [key, r] of view.rates) {
		const list = view.series.get(key) || [];
		push(list, r.packets);
		series.set(key, list);
	}
	view.series = series;
}

function age() {
	const seconds = (performance.now() - view.changed) / 1000;
	return seconds > Math.max(5, 3 * (view.data.interval || 1)) ? span(seconds) + " old" : null;
}

function topBar() {
	const data = view.data, old = data && age();
	const state = view.paused ? "paused" : view.lost || old ? "lost" : "";
	const text = view.paused ? "Paused" : view.lost ? "Connection lost" : old ? old : "Live";
	return h("header", { class: "top" }, h("div", null,
		h("span", { class: "brand" },
			h("svg", { viewBox: "0 0 240 240", "aria-hidden": "true" },
				[[0.02, 0.27], [0.3, 0.58], [0.61, 0.99]].map(([from, to], i) =>
					h("path", { d: piece(62, 116, from, to), fill: color(i) }))), "ringlb"),
		data ? h("span", { class: "where" }, h("b", null, data.instance), data.show ?
			[" \u00b7 generation ", h("b", null, String(data.show.generation)),
				" \u00b7 revision ", String(data.show.revision)] : null) : null,
		h("button", {
			class: "live " + state, type: "button", "aria-pressed": String(view.paused),
			title: view.paused ? "go on" : "stop the updates", onclick: pause,
		}, h("span", { class: "dot" }), text)));
}

function content() {
	const data = view.data;
	if (!data)
		return h("main", { class: "page", id: "content", key: "wait" },
			h("p", { class: "waiting" }, view.lost || "Asking for the status\u2026"));
	return h("main", { class: "page", id: "content", key: "page", tabindex: -1 }, hero(view, data),
		data.show && data.stats ? [
			tiles(view, data), services(view, data),
			data.show.pools.map((p) => poolCard(view, data, p)),
			h("div", { class: "columns" },
				h("div", { class: "stack" }, verdicts(view, data), flowEvents(data)),
				h("div", { class: "stack" }, drift(data), generations(view, data), system(data))),
		] : h("div", { class: "columns" }, generations(view, data)),
		h("footer", { class: "links" }, h("span", null, "For programs:"),
			[["/metrics", "Prometheus"], ["/api/v1/status", "status"], ["/api/v1/show", "show"],
				["/api/v1/stats", "stats"], ["/api/v1/history", "history"]]
				.map(([href, text]) => h("a", { href }, text))));
}

function draw() {
	patch(document.getElementById("app"), [topBar(), content()]);
}

let timer = null;

async function ask() {
	timer = null;
	let wait = EVERY_MS;
	try {
		const answer = await fetch("/api/v1/status", { cache: "no-store", signal: AbortSignal.timeout(10000) });
		if (!answer.ok)
			throw new Error(answer.status === 503 ? "ringlb is starting\u2026" : "answer " + answer.status);
		take(await answer.json());
	} catch (error) {
		const silent = error instanceof TypeError || error.name === "TimeoutError";
		view.lost = silent ? "ringlb does not answer. Trying again\u2026" : error.message;
		wait = RETRY_MS;
	}
	draw();
	next(wait);
}

function next(wait) {
	if (timer === null && !view.paused && !document.hidden)
		timer = setTimeout(ask, wait);
}

function pause() {
	view.paused = !view.paused;
	clearTimeout(timer);
	timer = null;
	draw();
	next(0);
}

document.documentElement.classList.add("js");
document.addEventListener("visibilitychange", () => next(0));
draw();
ask();
