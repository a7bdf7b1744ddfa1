// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"use strict";
/* Elements as plain objects, and what is on the page changed only where they differ: focus and selection stay. */

const SVG = new Set(["svg", "g", "path", "circle", "text", "title", "line", "rect"]);

/* h("p", {class: "x"}, "text", ...). A child that is null or false is left out; key: what it is, in a list. */
function h(tag, props, ...children) {
	const there = (child) => child !== null && child !== undefined && child !== false;
	return { tag, props: props || {}, children: children.flat(Infinity).filter(there) };
}

function setProp(element, name, value) {
	if (name === "key")
		return;
	if (name.startsWith("on"))
		element[name] = value;
	else if (name === "style")
		for (const [property, v] of Object.entries(value || {}))
			element.style.setProperty(property, v);
	else if (value === null || value === undefined || value === false)
		element.removeAttribute(name);
	else if (element.getAttribute(name) !== String(value))
		element.setAttribute(name, value === true ? "" : value);
}

function create(node) {
	if (typeof node !== "object")
		return document.createTextNode(node);
	const element = SVG.has(node.tag) ? document.createElementNS("http://www.w3.org/2000/svg", node.tag) :
		document.createElement(node.tag);
	element.node = node;
	for (const [name, value] of Object.entries(node.props))
		setProp(element, name, value);
	element.append(...node.children.map(create));
	return element;
}

function fits(element, node) {
	if (typeof node !== "object")
		return element.nodeType === Node.TEXT_NODE;
	return element.node && element.node.tag === node.tag && element.node.props.key === node.props.key;
}

function update(element, node) {
	if (typeof node !== "object") {
		if (element.data !== String(node))
			element.data = node;
		return;
	}
	/* The same object again: nothing below it has changed. */
	if (element.node === node)
		return;
	for (const name of Object.keys(element.node.props))
		if (!(name in node.props))
			setProp(element, name, null);
	for (const [name, value] of Object.entries(node.props))
		setProp(element, name, value);
	element.node = node;
	patch(element, node.children);
}

/* Makes the children of an element what the nodes say. */
function patch(parent, nodes) {
	const keyed = new Map();
	for (const child of parent.childNodes)
		if (child.node && child.node.props.key !== undefined)
			keyed.set(child.node.props.key, child);
	let at = parent.firstChild;
	for (const node of nodes) {
		const known = typeof node === "object" && node.props.key !== undefined ? keyed.get(node.props.key) : null;
		if (at && fits(at, node)) {
			update(at, node);
			at = at.nextSibling;
		} else if (known && fits(known, node)) {
			parent.insertBefore(known, at);
			update(known, node);
		} else {
			parent.insertBefore(create(node), at);
		}
	}
	while (at) {
		const next = at.nextSibling;
		at.remove();
		at = next;
	}
}

/* Numbers for people */

function short(n, unit = "") {
	const steps = ["", "k", "M", "G", "T", "P"];
	let i = 0;
	for (; n >= 999.5 && i < steps.length - 1; i++)
		n /= 1000;
	const digits = i === 0 && (n >= 10 || Number.isInteger(n)) ? 0 : n >= 100 ? 0 : n >= 10 ? 1 : 2;
	return [n.toFixed(digits), steps[i] + unit];
}

const joined = ([number, unit]) => unit ? number + " " + unit : number;

const whole = (n) => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");

const percent = (f) => (100 * f).toFixed(f > 0 && f < 0.001 ? 3 : f < 0.1 ? 2 : 1) + " %";

function bytes(n) {
	const steps = ["B", "KiB", "MiB", "GiB", "TiB"];
	let i = 0;
	for (; n >= 1024 && i < steps.length - 1; i++)
		n /= 1024;
	return n.toFixed(i && n < 100 ? 1 : 0) + " " + steps[i];
}

/* Rounded up, as the commands say it: what is to pass has passed then. */
function span(s) {
	if (s < 120)
		return Math.ceil(s) + " s";
	if (s < 120 * 60)
		return Math.ceil(s / 60) + " m";
	return s < 48 * 3600 ? Math.ceil(s / 3600) + " h" : Math.ceil(s / 86400) + " d";
}

const plural = (n, one, many = one + "s") => n === 1 ? "1 " + one : whole(n) + " " + many;

/* Signs that differ in shape, not only in colour */

const SHAPES = {
	good: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm3.6 5.3-4.2 4.6a.8.8 0 0 1-1.2 0L4.4 9.1a.8.8 0 1 1 1.2-1.1" +
		"l1.2 1.3 3.6-4a.8.8 0 1 1 1.2 1.0Z",
	warn: "M8 1.3c.5 0 .9.2 1.1.7l5.7 10.6c.5.9-.1 1.9-1.1 1.9H2.3c-1 0-1.6-1-1.1-1.9L6.9 2" +
		"c.2-.5.6-.7 1.1-.7Zm0 3.9a.8.8 0 0 0-.8.8v3.1a.8.8 0 0 0 1.6 0V6a.8.8 0 0 0-.8-.8Zm0 5.9" +
		"a.9.9 0 1 0 0 1.8.9.9 0 0 0 0-1.8Z",
	bad: "M5.3 1h5.4c.3 0 .5.1.7.3l3.3 3.3c.2.2.3.4.3.7v5.4c0 .3-.1.5-.3.7l-3.3 3.3c-.2.2-.4.3-.7.3H5.3" +
		"c-.3 0-.5-.1-.7-.3l-3.3-3.3a1 1 0 0 1-.3-.7V5.3c0-.3.1-.5.3-.7l3.3-3.3c.2-.2.4-.3.7-.3Zm.6 3.9" +
		"a.75.75 0 0 0-1 1L6.9 8l-2 2.1a.75.75 0 1 0 1 1l2.1-2 2.1 2a.75.75 0 1 0 1-1L9.1 8l2-2.1" +
		"a.75.75 0 1 0-1-1L8 6.9l-2.1-2Z",
	drain: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm.8 3.9v4.4l1.5-1.5a.75.75 0 1 1 1 1.1l-2.8 2.8" +
		"a.75.75 0 0 1-1 0L4.7 8.9a.75.75 0 1 1 1-1.1l1.5 1.5V4.9a.8.8 0 0 1 1.6 0Z",
	off: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1ZM6.2 5c.4 0 .7.3.7.7v4.6a.7.7 0 0 1-1.4 0V5.7c0-.4.3-.7.7-.7Z" +
		"m3.6 0c.4 0 .7.3.7.7v4.6a.7.7 0 0 1-1.4 0V5.7c0-.4.3-.7.7-.7Z",
	unchecked: "M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1Zm0 1.6a5.4 5.4 0 1 0 0 10.8A5.4 5.4 0 0 0 8 2.6Zm-2.5 4.6h5" +
		"a.8.8 0 0 1 0 1.6h-5a.8.8 0 0 1 0-1.6Z",
};

function icon(shape, level = shape) {
	return h("svg", { class: "icon " + level, viewBox: "0 0 16 16", "aria-hidden": "true" },
		h("path", { d: SHAPES[shape], fill: "currentColor", "fill-rule": "evenodd" }));
}

function badge(shape, level, text) {
	return h("span", { class: "badge " + level }, icon(shape, level), text);
}
