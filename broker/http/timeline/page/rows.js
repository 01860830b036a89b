// The rows of the timeline: one partition each, in the order of the broker, painted while they are in sight.

import { el, fill, named } from "/page/dom.js";
import { barAt, paintRow } from "/page/paint.js";
import { at, counted, distance, msOf, place, size, span, when } from "/page/words.js";

const PLACES = ["local", "store", "both"];
const WHERE = { local: "on the disk", store: "in the object store alone", both: "on the disk and in the object store" };
const WHAT = { removal: "goes", roll: "rolls", compaction: "compacts" };

/** A partition of an answer as the page keeps it. `bars` stay from the last answer that had some. */
function understood(state, columns, before) {
  const bars = state.bars.map((each) => barOf(each, columns));
  return {
    ...state,
    key: `${state.topic}:${state.partition}`,
    bars: bars.length ? bars : (before?.bars ?? []),
    horizon: msOf(state.retention?.horizon ?? null),
    segmentBytes: state.segment_bytes,
    landing: before?.landing ?? null,
  };
}

function barOf(numbers, columns) {
  const of = Object.fromEntries(columns.map((each, index) => [each, numbers[index]]));
  return {
    base: of.base_offset, segments: of.segments, size: of.size_bytes, state: of.state, place: PLACES[of.place],
    firstRecord: of.first_record_ms, lastRecord: of.last_record_ms,
    firstArrival: of.first_arrival_ms, lastArrival: of.last_arrival_ms,
  };
}

/** All rows of the page of partitions that is shown. */
export class Rows {
  #list;
  #tip;
  #elements = new Map();
  #visible = new Set();
  #isFresh = false; // what is out of sight is read too: by search, by screen readers
  #observer;

  /** `list` holds the rows; `chosen(row, bar)` is told when somebody picks one; `tip` floats. */
  constructor(list, tip, { chosen, cameIntoSight }) {
    this.#list = list;
    this.#tip = tip;
    this.all = [];
    this.byKey = new Map();
    this.chosen = chosen;
    this.view = null;
    this.#observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const key = entry.target.dataset.key;
        if (entry.isIntersecting) this.#visible.add(key);
        else this.#visible.delete(key);
      }
      cameIntoSight();
      this.paint();
    }, { rootMargin: "120px" });
  }

  /** The partitions of this page are these, in this order. */
  replace(states, columns) {
    this.all = states.map((each) => understood(each, columns, this.byKey.get(`${each.topic}:${each.partition}`)));
    this.byKey = new Map(this.all.map((each) => [each.key, each]));
    for (const [key, element] of this.#elements) if (!this.byKey.has(key)) this.#drop(key, element);
    this.all.forEach((row, index) => this.#place(row, index));
    this.#isFresh = true;
  }

  /** Newer states of some of them. */
  update(states, columns) {
    for (const state of states) {
      const key = `${state.topic}:${state.partition}`;
      const before = this.byKey.get(key);
      if (before === undefined) continue;
      const row = understood(state, columns, before);
      this.byKey.set(key, row);
      this.all[this.all.findIndex((each) => each.key === key)] = row;
    }
  }

  /** The stretch of rows in sight, [first, last] by place; null for none. */
  get inSight() {
    const places = this.all.map((row, index) => (this.#visible.has(row.key) ? index : -1)).filter((each) => each >= 0);
    return places.length ? [places[0], places[places.length - 1]] : null;
  }

  /** Draws what is in sight and writes what is beside it. `view`: axis, colours, times, now, searched. */
  paint(view = this.view) {
    this.view = view;
    if (view === null) return;
    for (const [key, element] of this.#elements) {
      const row = this.byKey.get(key), isVisible = this.#visible.has(key);
      if (row === undefined) continue;
      if (isVisible || this.#isFresh) this.#write(row, element, view);
      if (isVisible) paintRow(element.canvas, row, view.axis, view);
    }
    this.#isFresh = false;
  }

  /** Which row the details tell of; null for none. */
  mark(key) {
    for (const [each, { button }] of this.#elements) button.setAttribute("aria-expanded", String(each === key));
  }

  /** Gives the focus back to the row that the details told of. */
  focus(key) {
    this.#elements.get(key)?.button.focus();
  }

  #place(row, index) {
    let element = this.#elements.get(row.key);
    if (element === undefined) {
      element = this.#made(row);
      this.#elements.set(row.key, element);
      this.#observer.observe(element.item);
    }
    if (this.#list.children[index] !== element.item) this.#list.insertBefore(element.item, this.#list.children[index] ?? null);
  }

  #made(row) {
    const button = el("button", { type: "button", class: "name", "aria-expanded": "false", "aria-controls": "detail" }, named(place(row.topic, row.partition)));
    const facts = el("span", { class: "facts quiet" });
    const canvas = el("canvas", { role: "img" });
    const next = el("div", { class: "next" });
    const item = el("li", { class: "row", "data-key": row.key }, el("div", { class: "who" }, button, facts), el("div", { class: "picture" }, canvas), next);
    button.addEventListener("click", () => this.chosen(this.byKey.get(row.key), null));
    canvas.addEventListener("click", (event) => this.chosen(this.byKey.get(row.key), this.#under(row.key, event)));
    canvas.addEventListener("pointermove", (event) => this.#point(row.key, event));
    canvas.addEventListener("pointerleave", () => { this.#tip.hidden = true; });
    return { item, button, facts, canvas, next };
  }

  #drop(key, element) {
    this.#observer.unobserve(element.item);
    element.item.remove();
    this.#elements.delete(key);
    this.#visible.delete(key);
  }

  #write(row, element, view) {
    fill(element.facts, `${counted(row.segments, "segment")} · ${size(row.size_bytes)}${row.store?.alone_segments ? `, ${size(row.store.alone_bytes)} of it in the store alone` : ""}`);
    const label = described(row, view.now);
    if (element.canvas.getAttribute("aria-label") !== label) element.canvas.setAttribute("aria-label", label);
    fill(element.next, ...nextOf(row, view.now));
  }

  #under(key, event) {
    const { axis, times, now } = this.view;
    return barAt(this.byKey.get(key), axis, times, now, event.offsetX);
  }

  #point(key, event) {
    if (this.view === null) return;
    const bar = this.#under(key, event), tip = this.#tip;
    tip.hidden = false;
    tip.textContent = bar === null ? when(this.view.axis.ms(event.offsetX)) : told(bar);
    const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, event.clientY - tip.offsetHeight - 12)}px`;
  }
}

function told(bar) {
  const many = bar.segments > 1 ? `${bar.segments} segments from offset ${bar.base}` : `Segment ${bar.base}`;
  return `${many}, ${size(bar.size)}\nrecords ${when(bar.firstRecord)} – ${when(bar.lastRecord)}\ncame ${when(bar.firstArrival)} – ${when(bar.lastArrival)}\n${WHERE[bar.place]}`;
}

/** What the picture shows, in words. */
function described(row, now) {
  if (row.fault !== null) return `${place(row.topic, row.partition)} is offline: ${row.fault}`;
  if (row.is_still_reading) return "The times of its segments are still being read.";
  const parts = [`${counted(row.segments, "segment")} with records from ${at(row.oldest_record)} to ${at(row.newest_record)}`];
  if (row.store !== null) parts.push(inStore(row.store));
  if (row.retention?.leaving_segments) parts.push(`${row.retention.leaving_segments} go at the next round`);
  if (row.retention?.overdue_segments) parts.push(`${row.retention.overdue_segments} overdue, held up by segment ${row.retention.stays}: ${row.retention.stays_because}`);
  for (const each of row.dirty) parts.push(`a record claims ${at(each.worst_timestamp)}`);
  if (row.landing) parts.push(row.landing.offset === null ? "the search finds nothing here" : `the search lands at offset ${row.landing.offset}`);
  if (row.horizon !== null) parts.push(`retention reaches back to ${when(row.horizon)}, ${distance(row.horizon, now)}`);
  return `${parts.join("; ")}.`;
}

/** How much of a partition the object store has. */
function inStore(store) {
  const alone = store.alone_segments ? `${counted(store.alone_segments, "segment")} (${size(store.alone_bytes)}) there alone` : "all of it on the disk too";
  return `the object store has ${size(store.size_bytes)}, up to offset ${store.end_offset}, ${alone}`;
}

/** What goes next, and what holds it up. */
function nextOf(row, now) {
  if (row.fault !== null) return [el("strong", { class: "bad" }, "offline"), ` ${row.fault}`];
  if (row.is_still_reading) return [el("span", { class: "quiet" }, "reading…")];
  const lines = [];
  if (row.retention.overdue_segments) {
    lines.push(el("div", {}, el("strong", { class: "bad" }, `${row.retention.overdue_segments} held up for ${span(row.retention.overdue_ms)}`), ` by segment ${row.retention.stays}: ${row.retention.stays_because}`));
  }
  if (row.compaction?.overdue_ms) lines.push(el("div", {}, el("strong", { class: "bad" }, `compaction late by ${span(row.compaction.overdue_ms)}`)));
  const soon = row.upcoming.find((each) => each.at !== null);
  if (soon !== undefined) lines.push(el("div", {}, el("strong", {}, `${WHAT[soon.what]} ${distance(soon.at.ms, now)}`), ` ${aboutOf(soon)}`));
  if (!row.size_bytes) return [el("span", { class: "quiet" }, "no records")];
  if (!lines.length) lines.push(el("span", { class: "quiet" }, row.retention.stays_because ?? "nothing"));
  return lines.slice(0, 2);
}

function aboutOf(event) {
  if (event.what === "compaction") return "what is dirty";
  return event.segments > 1 ? `${counted(event.segments, "segment")}, ${size(event.size_bytes)}` : `segment ${event.base_offset}, ${size(event.size_bytes)}`;
}
