// Where share groups stand: of each partition what nobody has finished, and what comes next.

import { fillTable, named } from "/page/dom.js";
import { at, distance, name, number, place, span } from "/page/words.js";

const QUEUES = [
  { title: "partition", wide: true }, { title: "share group", wide: true }, { title: "first unfinished", number: true }, { title: "behind", number: true },
  { title: "in hands", number: true }, { title: "not due", number: true }, { title: "next due" }, { title: "oldest by record time", number: true },
  { title: "by arrival", number: true }, { title: "dead letters", wide: true },
];

/** The answer of /api/timeline/queues. */
export function showQueues(table, answer) {
  const rows = answer.queues.map((each) => [
    named(place(each.topic, each.partition)), named(name(each.group)), number(each.start), number(each.behind),
    each.records === null ? "nobody reads" : number(each.records.acquired), each.waiting === null ? "–" : number(each.waiting),
    each.next_due === null ? "–" : `${at(each.next_due)}, ${distance(each.next_due.ms, answer.now.ms)}`,
    age(each.oldest_record_seconds), age(each.oldest_arrival_seconds), letters(each.letters),
  ]);
  const more = answer.queues_in_all - answer.queues.length;
  const caption = "Share groups, the oldest unfinished record first" + (more > 0 ? `; ${number(more)} more partitions` : "");
  fillTable(table, caption, QUEUES, rows, "No share group has read anything.");
}

function age(seconds) {
  return seconds === null ? "–" : seconds === 0 ? "0" : span(seconds * 1000);
}

function letters(counts) {
  return Object.entries(counts).filter(([, count]) => count > 0).map(([reason, count]) => `${number(count)} ${reason}`).join(", ") || "–";
}
