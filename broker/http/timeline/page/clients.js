// Who sent bad times, and which groups are behind: two tables of names that clients chose.

import { el, fillTable, named } from "/page/dom.js";
import { at, name, number, place, span, user } from "/page/words.js";

const DIRTY = [
  { title: "client", wide: true }, { title: "user" }, { title: "address" }, { title: "partition", wide: true }, { title: "records", number: true },
  { title: "what is wrong" }, { title: "worst time" }, { title: "offset", number: true }, { title: "what became of it" },
];
const READERS = [
  { title: "partition", wide: true }, { title: "group", wide: true }, { title: "records", number: true },
  { title: "by record time", number: true }, { title: "by arrival", number: true },
];
const SHOWN = 50;

/** The answer of /api/dirty. */
export function showDirty(table, answer) {
  const rows = answer.clients.map((each) => [
    named(name(each.client_id)), named(user(each.principal)), named(name(each.address)), named(place(each.topic, each.partition)), number(each.count),
    each.reason === "bound" ? each.direction : `${each.direction}: ${each.reason}`,
    el("span", { title: `${span(Math.abs(each.worst_skew_ms))} ${each.worst_skew_ms < 0 ? "ahead of" : "behind"} the clock` }, at(each.worst_timestamp)),
    each.worst_offset === null ? "–" : String(each.worst_offset), each.action,
  ]);
  const more = answer.clients_in_all - answer.clients.length;
  const caption = "Clients that sent times out of bounds, or older than their topic keeps" + (more > 0 ? `; ${number(more)} more` : "");
  fillTable(table, caption, DIRTY, rows, "No bad times since the broker started.");
}

/** The groups furthest behind, from the partitions' own states. */
export function showReaders(table, rows) {
  const behind = rows.filter((each) => each.lag !== null && each.lag.records > 0);
  behind.sort((one, other) => (other.lag.arrival_ms ?? 0) - (one.lag.arrival_ms ?? 0));
  fillTable(table, "Of each partition the group that is furthest behind", READERS, behind.slice(0, SHOWN).map(({ topic, partition, lag }) => [
    named(place(topic, partition)), named(name(lag.group)), number(lag.records), time(lag.record_time_ms), time(lag.arrival_ms),
  ]), "No group is behind.");
}

function time(ms) {
  return ms === null ? "–" : span(ms);
}
