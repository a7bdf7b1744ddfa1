// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Everything on the page but the pools. */

const HISTORY_SHOWN = 6;

/* What someone should look at: {level, what, why} */
function concerns(view, data) {
	const found = [], show = data.show;
	const add = (level, what, why) => found.push({ level, what, why });
	if (!show) {
		add("bad", "Nothing is attached.", "ringlb attach, or ringlb run, starts the instance.");
		return found;
	}
	for (const i of show.interfaces)
		if (i.mode === "missing")
			add("bad", `Interface ${i.name} is missing.`, "It is attached again once it exists.");
	for (const s of show.services)
		if (!s.ready)
			add("bad", `Service ${s.name} is not ready.`, ((data.ready || {})[s.name] || {}).reason || "");
	const down = [], silent = [];
	for (const pool of show.pools)
		for (const b of pool.backends) {
			const health = view.health.get(backendKey(pool.name, b));
			if (b.health === "down")
				down.push([pool, b, health]);
			if (health && health.stale)
				silent.push(b.name);
		}
	for (const [pool, b, health] of down.slice(0, 5))
		add("warn", `${b.name} in pool ${pool.name} is down` + (health ? ` for ${span(health.since)}.` : "."),
			health ? health.reason : "");
	if (down.length > 5)
		add("warn", `And ${plural(down.length - 5, "more backend is down", "more backends are down")}.`, "");
	if (silent.length)
		add("warn", `${plural(silent.length, "backend")} had no check for long.`, silent.slice(0, 6).join(", "));
	const unresolved = data.unresolved || [];
	if (unresolved.length)
		add("warn", `${plural(unresolved.length, "backend has", "backends have")} no known next hop.`,
			unresolved.slice(0, 6).map((b) => b.name).join(", "));
	for (const [name, rate] of view.verdictRates)
		if (name.startsWith("dropped") && rate > 0) {
			const m = meaning(data, "verdicts", name);
			add("warn", `${joined(short(rate))} packets/s are dropped: ${m.meaning || name}.`, m.remedy);
		}
	if (data.reload && !data.reload.ok)
		add("warn", "The last reload failed; what ran before still runs.", data.reload.message || "");
	if (show.drift.length)
		add("warn", `What runs differs from its file in ${plural(show.drift.length, "point")}.`, "");
	return found;
}

function meaning(data, group, name) {
	return ((data.meanings || {})[group] || {})[name] || {};
}

function hero(view, data) {
	const list = concerns(view, data), show = data.show;
	const level = list.some((c) => c.level === "bad") ? "bad" : list.length ? "warn" : "good";
	const services = show ? show.services : [], ready = services.filter((s) => s.ready).length;
	const others = services.length - ready;
	const headline = !show ? "Not attached" :
		others ? `${others} of ${plural(services.length, "service")} ${others === 1 ? "is" : "are"} not ready` :
			services.length === 1 ? `Service ${services[0].name} is ready` : `All ${services.length} services are ready`;
	const backends = show ? show.pools.reduce((n, p) => n + p.backends.length, 0) : 0;
	return h("section", { class: "card hero " + level, "aria-label": "Summary" }, icon(level),
		h("h1", null, headline),
		h("p", null, show ? `${plural(show.pools.length, "pool")}, ${plural(backends, "backend")}, ` +
			`${plural(show.interfaces.length, "interface")} \u00b7 ` +
			(list.length ? plural(list.length, "thing") : "nothing") + " to look at" : ""),
		list.length ? h("ul", null, list.map((c) => h("li", { class: c.level }, icon(c.level),
			h("div", null, c.what, c.why ? h("span", null, " " + c.why) : null)))) : null);
}

function tile(label, [value, unit], below) {
	return h("section", { class: "card tile", "aria-label": label }, h("h2", null, label),
		h("div", { class: "value" }, value, unit ? h("small", null, " " + unit) : null), below);
}

function tiles(view, data) {
	const table = data.stats.flow_table || {}, full = table.capacity ? table.used / table.capacity : 0;
	const backends = data.show.pools.flatMap((p) => p.backends);
	const healthy = backends.filter((b) => b.health !== "down").length;
	const moved = Math.max(0, ...data.show.pools.map((p) => p.moved), ...data.show.services.map((s) => s.moved || 0));
	const latest = (list) => list.length ? list[list.length - 1] : 0;
	return h("div", { class: "tiles" },
		tile("Packets", short(latest(view.packets), "pkt/s"), sparkline(view.packets, "packets a second, last minutes")),
		tile("Traffic", short(latest(view.bits), "bit/s"), sparkline(view.bits, "bits a second, last minutes")),
		tile("Backends", [healthy, "of " + whole(backends.length) + " up"],
			bar(backends.length ? healthy / backends.length : 0, healthy === backends.length ? "good" : "good lacks",
				`${healthy} of ${backends.length} backends`)),
		tile("Flow table", [percent(full).replace(" %", ""), "% of " + joined(short(table.capacity || 0))],
			bar(full, full > 0.9 ? "bad" : full > 0.7 ? "warn" : "",
				`${whole(table.used || 0)} of ${whole(table.capacity || 0)} entries`)),
		tile("Still moving", [percent(moved).replace(" %", ""), "% at most"],
			bar(moved, moved > 0 ? "warn" : "", "share of a pool whose old flows are still kept")));
}

function services(view, data) {
	return h("section", { class: "card", "aria-label": "Services" }, h("header", null, h("h2", null, "Services")),
		h("table", { class: "table" },
			h("thead", null, h("tr", null, ["Service", "Ready", "Pool", "How", ["Packets/s"], ["Traffic"]].map((t) =>
				h("th", { scope: "col", class: Array.isArray(t) ? "n" : "" }, t)))),
			h("tbody", null, data.show.services.map((s) => {
				const rate = view.serviceRates.get(s.name) || {}, why = ((data.ready || {})[s.name] || {}).reason;
				const address = s.address.includes(":") ? `[${s.address}]` : s.address;
				const how = [s.forward, s.affinity !== "flow" && "by " + s.affinity, s.moved > 0 && percent(s.moved) + " moving"];
				return h("tr", { key: s.name },
					h("td", null, h("span", { class: "name" }, s.name),
						h("span", { class: "sub mono" }, address, h("wbr"), `:${s.port}/${s.protocol}`)),
					h("td", { class: "right", title: why || "" },
						s.ready ? badge("good", "good", "ready") : badge("bad", "bad", "not ready")),
					h("td", { "data-label": "pool" }, h("a", { href: "#pool-" + s.pool }, s.pool)),
					h("td", { class: "note right" }, how.filter(Boolean).join(" \u00b7 ")),
					h("td", { class: "n", "data-label": "pkt/s" },
						rate.packets === undefined ? "\u2013" : joined(short(rate.packets))),
					h("td", { class: "n right" },
						rate.bytes === undefined ? "\u2013" : joined(short(8 * rate.bytes, "bit/s"))));
			}))));
}

function verdicts(view, data) {
	const entries = Object.entries(data.stats.verdicts);
	return h("section", { class: "card", "aria-label": "Verdicts" },
		h("header", null, h("h2", null, "What became of packets"), h("span", { class: "note" }, "each counts once")),
		h("ul", { class: "list verdicts" }, entries.map(([name, count]) => {
			const m = meaning(data, "verdicts", name), rate = view.verdictRates.get(name);
			const bad = name.startsWith("dropped") && count > 0;
			return h("li", { key: name },
				h("span", { class: bad ? "name warn-text" : "name" }, name.replaceAll("_", " ")),
				h("span", { class: "count" }, whole(count)),
				h("span", { class: "sub" }, m.meaning || ""),
				h("span", { class: "rate" }, rate > 0 ? joined(short(rate)) + "/s" : ""),
				bad && m.remedy ? h("span", { class: "hint" }, "\u2192 " + m.remedy) : null);
		})));
}

function when(text) {
	const date = text ? new Date(text) : null;
	return date && !Number.isNaN(date.getTime()) ?
		date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }) : "";
}

function generations(view, data) {
	const all = [...data.history].reverse(), shown = view.all.has("history") ? all : all.slice(0, HISTORY_SHOWN);
	return h("section", { class: "card", "aria-label": "Generations" }, h("header", null, h("h2", null, "Generations"),
		h("span", { class: "note" }, "ringlb rollback returns to one")),
	all.length ? null : h("p", { class: "empty" }, "None is kept."),
	h("ol", { class: "list generations" }, shown.map((g) => h("li", { key: g.generation },
		h("span", { class: "number" }, "#" + g.generation),
		h("span", null, g.summary),
		g.active ? badge("good", "good", "runs") : h("span", { class: "when" }, when(g.time)),
		h("span", { class: "sub mono" }, (g.digest || "").slice(0, 12),
			g.active && g.time ? " \u00b7 " + when(g.time) : "")))),
	shown.length < all.length ? h("button", { class: "all", type: "button", onclick: () => view.showAll("history") },
		`Show all ${all.length}`) : null);
}

function drift(data) {
	const show = data.show;
	return h("section", { class: "card", "aria-label": "Drift" }, h("header", null, h("h2", null, "Drift"),
		h("span", { class: "note" },
			show.drift.length ? badge("warn", "warn", plural(show.drift.length, "difference")) : null)),
	show.drift.length ? h("ul", { class: "list drifts" }, show.drift.map((line) => h("li", null, line))) :
		h("p", { class: "empty" },
			show.file ? ["What runs is what ", h("code", null, show.file), " says."] : "What runs has no file."));
}

function system(data) {
	const show = data.show, memory = data.memory || {}, commits = data.commits || { counts: [] };
	const count = commits.counts.reduce((a, b) => a + b, 0);
	const rows = [
		["Interfaces", show.interfaces.map((i) => `${i.name} (${i.mode})`).join(", ")],
		["Digest", h("code", null, show.digest.slice(0, 16))],
		["Effective digest", h("code", null, show.effective_digest.slice(0, 16))],
		["Map memory", memory.locked === undefined ? null : bytes(memory.locked)],
		["Commits", count ? `${whole(count)}, ${(1000 * commits.sum / count).toFixed(1)} ms on average` +
			(commits.failed ? `, ${commits.failed} failed` : "") : null],
		["ringlb", data.build ? data.build.version : null],
	];
	return h("section", { class: "card", "aria-label": "Instance" }, h("header", null, h("h2", null, "Instance")),
		h("dl", { class: "facts" }, rows.filter(([, v]) => v).map(([k, v]) => [h("dt", null, k), h("dd", null, v)])));
}

function flowEvents(data) {
	const events = Object.entries(data.stats.flow_events || {});
	return h("section", { class: "card", "aria-label": "Flow table" }, h("header", null, h("h2", null, "Flow table"),
		h("span", { class: "note" },
			`${plural(data.stats.flow_table.used, "entry", "entries")}, ${plural(data.stats.flow_table.openings, "opening")}`)),
	h("ul", { class: "list verdicts" }, events.map(([name, count]) => h("li", { key: name },
		h("span", { class: "name" }, name.replaceAll("_", " ")), h("span", { class: "count" }, whole(count)),
		h("span", { class: "sub" }, meaning(data, "flow_events", name).meaning || "")))));
}
