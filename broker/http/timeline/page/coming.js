// What goes next over all partitions of the page, soonest first, and the totals above it.

import { el, fill, named } from "/page/dom.js";
import { counted, distance, number, place, size, span, when } from "/page/words.js";

const SHOWN = 6;
const WHAT = { removal: ["leaves", "leave"], roll: ["is ended", "are ended"], compaction: ["is compacted", "are compacted"] };

/** Writes both. `rows` are the partitions, `now` the broker's clock. */
export function showComing(list, totals, rows, now, inAll) {
  const events = rows.flatMap((row) => row.upcoming.map((event) => ({ row, event }))).filter(({ event }) => event.at !== null);
  events.sort((one, other) => one.event.at.ms - other.event.at.ms);
  fill(list, ...alike(events).slice(0, SHOWN).map(({ row, event, more }) => line(row, event, now, more)));
  if (!events.length) fill(list, el("li", { class: "quiet" }, "Nothing is due by time."));
  fill(totals, ...facts(rows, inAll).flatMap(([name, value, isBad]) => [el("div", { class: isBad ? "bad" : null }, el("dt", {}, name), el("dd", {}, value))]));
}

/** Of what happens to several partitions of a topic the soonest, and how many more there are. */
function alike(events) {
  const found = new Map();
  for (const { row, event } of events) {
    const key = JSON.stringify([row.topic, event.what, event.because]);
    const first = found.get(key);
    if (first === undefined) found.set(key, { row, event, more: 0 });
    else first.more += 1;
  }
  return [...found.values()];
}

function line(row, event, now, more) {
  const many = event.segments > 1;
  const subject = event.what === "compaction" ? "what is dirty" : many ? counted(event.segments, "segment") : `segment ${event.base_offset}`;
  const amount = event.size_bytes === null ? "" : ` (${size(event.size_bytes)})`;
  return el("li", {},
    el("strong", { title: `${when(event.at.ms)} UTC` }, event.at.ms < now ? `since ${span(now - event.at.ms)}` : distance(event.at.ms, now)), " ",
    named(place(row.topic, row.partition)), `: ${subject}${amount} ${WHAT[event.what][many ? 1 : 0]}`,
    el("span", { class: "quiet" }, ` – ${event.because}${more ? `; then ${counted(more, "more partition")}` : ""}`));
}

function facts(rows, inAll) {
  const sum = (read) => rows.reduce((total, each) => total + read(each), 0);
  const most = (read) => rows.reduce((found, each) => Math.max(found, read(each)), 0);
  const overdue = sum((each) => each.retention?.overdue_segments ?? 0);
  const dirty = sum((each) => each.dirty.reduce((total, entry) => total + entry.count, 0));
  const late = most((each) => each.compaction?.overdue_ms ?? 0);
  const behind = most((each) => each.lag?.arrival_ms ?? 0);
  return [
    ["Partitions", rows.length < inAll ? `${number(rows.length)} of ${number(inAll)}` : number(rows.length), false],
    ["Segments", number(sum((each) => each.segments)), false],
    ["Size", size(sum((each) => each.size_bytes)), false],
    ...(rows.some((each) => each.store !== null) ? [
      ["In the store", size(sum((each) => each.store?.size_bytes ?? 0)), false],
      ["On the disk", size(sum((each) => each.size_bytes - (each.store?.alone_bytes ?? 0))), false],
    ] : []),
    ["Leave at the next round", number(sum((each) => each.retention?.leaving_segments ?? 0)), false],
    ["Overdue, held up", number(overdue), overdue > 0],
    ["Bad times", number(dirty), dirty > 0],
    ["Compaction late by", late ? span(late) : "–", late > 0],
    ["Furthest reader", behind ? `${span(behind)} behind` : "–", false],
  ];
}
