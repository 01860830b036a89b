// The timeline as a table: all that the picture shows, in words and numbers.

import { fillTable, named } from "/page/dom.js";
import { at, counted, distance, number, place, size, span, when } from "/page/words.js";

const COLUMNS = [
  { title: "partition", wide: true }, { title: "segments", number: true }, { title: "size", number: true }, { title: "in the store alone", number: true }, { title: "oldest record" },
  { title: "newest record" }, { title: "retention reaches to" }, { title: "next", wide: true }, { title: "held up", wide: true },
  { title: "bad times", wide: true }, { title: "search lands at" },
];
const WHAT = { removal: "removal", roll: "roll", compaction: "compaction" };

/** Writes the table of the partitions that the page shows. */
export function showTable(table, rows, now) {
  fillTable(table, "Partitions in the order of their names; times are UTC", COLUMNS, rows.map((row) => [
    named(place(row.topic, row.partition)), number(row.segments), size(row.size_bytes), row.store === null ? "–" : size(row.store.alone_bytes), at(row.oldest_record), at(row.newest_record),
    when(row.horizon), next(row, now), heldUp(row), dirty(row), landing(row),
  ]), "There are no partitions.");
}

function next(row, now) {
  const soon = row.upcoming.find((each) => each.at !== null);
  if (soon === undefined) return row.fault ?? (row.size_bytes ? null : "no records") ?? row.retention?.stays_because ?? "–";
  return `${WHAT[soon.what]} ${distance(soon.at.ms, now)}: ${soon.because}`;
}

function heldUp(row) {
  if (!row.retention?.overdue_segments) return "–";
  return `${counted(row.retention.overdue_segments, "segment")} for ${span(row.retention.overdue_ms)} by segment ${row.retention.stays}: ${row.retention.stays_because}`;
}

function dirty(row) {
  return row.dirty.map((each) => `${at(each.worst_timestamp)} at offset ${each.worst_offset ?? "–"}`).join("; ") || "–";
}

function landing(row) {
  if (row.landing === null) return "–";
  return row.landing.offset === null ? "nothing there" : `offset ${row.landing.offset}, segment ${row.landing.segment}`;
}
