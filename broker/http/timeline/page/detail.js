// One partition in words: what keeps it, who did it, what frees it, and its segments in a table.

import { Refused } from "/page/api.js";
import { el, fill, fillTable, named } from "/page/dom.js";
import { at, counted, distance, name, number, place, size, span, user } from "/page/words.js";

const SEGMENTS = [
  { title: "offset", number: true }, { title: "offsets", number: true }, { title: "size", number: true }, { title: "where" }, { title: "first record" },
  { title: "last record" }, { title: "last arrival" }, { title: "why it is here", wide: true }, { title: "until" },
];
const WHERE = { local: "disk", store: "store", both: "disk, store" };
const PAGE = 100, MOST = 1000;

/** The panel below the timeline. */
export class Detail {
  #api;
  #nodes;
  #segments = [];
  #state = null;
  #next = null;

  constructor(api, nodes, closed) {
    this.#api = api;
    this.#nodes = nodes;
    this.row = null;
    nodes.close.addEventListener("click", () => {
      const key = this.row?.key ?? null;
      this.hide();
      closed(key);
    });
    nodes.more.addEventListener("click", () => this.#load(this.#next));
  }

  /** Opens on a partition, beginning with the segment of a bar when one was picked. */
  async show(row, bar) {
    this.row = row;
    this.#segments = [];
    this.#nodes.section.hidden = false;
    fill(this.#nodes.title, named(place(row.topic, row.partition)));
    fill(this.#nodes.said, el("p", { class: "quiet" }, "Reading…"));
    await this.#load(bar === null ? null : `${row.partition}:${bar.base - 1}`);
    this.#nodes.section.focus();
  }

  /** Reads again what is shown, unless somebody has gone on to further segments. */
  async refresh() {
    if (this.row === null || this.#segments.length > PAGE) return;
    const begin = this.#segments.length ? `${this.row.partition}:${this.#segments[0].base_offset - 1}` : null;
    this.#segments = [];
    await this.#load(begin);
  }

  hide() {
    this.row = null;
    this.#nodes.section.hidden = true;
  }

  async #load(after) {
    const { topic, partition } = this.row;
    try {
      const answer = await this.#api.ofTopic(topic, "segments", { partition, limit: PAGE, after });
      if (this.row?.topic !== topic || this.row.partition !== partition) return;
      const [state] = answer.partitions;
      this.#next = answer.next;
      this.#state = state;
      this.#segments.push(...state.segments);
      this.#write(answer);
    } catch (error) {
      fill(this.#nodes.said, el("p", { class: "bad" }, error instanceof Refused ? error.message : "Nobody answers."));
    }
  }

  #write(answer) {
    const { said, table, more } = this.#nodes, now = answer.now.ms;
    fill(said, ...this.#story(answer, now));
    const shown = this.#segments.length;
    fillTable(table, `${counted(shown, "segment")} of ${number(this.#state.segment_count)}, oldest first; times are UTC`, SEGMENTS, this.#segments.map(segment), "None behind this place.");
    more.hidden = this.#next === null || shown >= MOST;
  }

  #story(answer, now) {
    const state = this.#state, blocker = state.blocker, lines = [el("p", {}, limits(answer.settings))];
    if (state.leaving_count) lines.push(el("p", {}, `${counted(state.leaving_count, "segment")} may go at the next round of retention.`));
    if (blocker !== null) lines.push(el("p", {}, keeper(blocker, now)), ...people(blocker), ...this.#ways(blocker, now));
    if (this.row.dirty.length) lines.push(el("p", {}, "Bad times that came here since the broker started:"), el("ul", {}, ...this.row.dirty.map(badTime)));
    const roll = state.roll;
    if (roll.deadline !== null) lines.push(el("p", {}, `Its last segment ends ${distance(roll.deadline.ms, now)} (${roll.because}) or with ${size(roll.ends_at_bytes)}; it has ${size(roll.size_bytes)}.`));
    return lines;
  }

  #ways(blocker, now) {
    const kept = this.#segments.find((each) => each.base_offset === blocker.base_offset);
    if (kept === undefined || !kept.retention.frees.length) return [];
    return [el("p", {}, "What frees it:"), el("ul", {}, ...kept.retention.frees.map((each) => el("li", {}, way(each, now))))];
  }
}

function limits(settings) {
  const value = (key) => settings[key]?.value ?? "";
  if (!value("cleanup.policy").includes("delete")) return `cleanup.policy is ${value("cleanup.policy") || "empty"}: nothing goes by age.`;
  const limit = (key, text) => (Number(value(key)) < 0 ? "unlimited" : text(Number(value(key))));
  return `retention.ms ${limit("retention.ms", span)}, retention.bytes ${limit("retention.bytes", size)}, by the ${value("horolog.retention.clock")} clock.`;
}

function keeper(blocker, now) {
  const record = blocker.offset === null ? "" : ` of the record at offset ${blocker.offset}`;
  const time = blocker.time === null ? "" : ` (${blocker.judged_by} ${at(blocker.time)}${record})`;
  const until = blocker.until === null ? "" : `, until ${at(blocker.until)}, ${distance(blocker.until.ms, now)}`;
  return `The segment at ${blocker.base_offset} stays: ${blocker.because}${time}${until}.`;
}

function people(blocker) {
  return blocker.clients.map((each) => el("p", {}, "Sent by ", named(name(each.client_id)), " of ", named(user(each.principal)), " at ", named(name(each.address)),
    `: ${counted(each.count, "record")} with bad times (${each.reason}), worst ${at(each.worst_timestamp)}.`));
}

function badTime(each) {
  const offset = each.worst_offset === null ? "not stored" : `offset ${each.worst_offset}`;
  const skew = `${span(Math.abs(each.worst_skew_ms))} ${each.worst_skew_ms < 0 ? "ahead of" : "behind"} its arrival`;
  return el("li", {}, named(name(each.client_id)), " of ", named(user(each.principal)), " at ", named(name(each.address)), `: ${counted(each.count, "record")} (${each.direction}, ${each.reason}; ${each.action}), `,
    `worst ${at(each.worst_timestamp)}, ${skew}, ${offset}.`);
}

function way(each, now) {
  switch (each.how) {
    case "wait": return each.until ? `Wait until ${at(each.until)}, ${distance(each.until.ms, now)}.` : `Wait for ${each.for}.`;
    case "free-first": return `What frees the segment at ${each.base_offset}.`;
    case "confirm-clock": return "Confirm that the broker's clock is right: horolog clock confirm.";
    case "delete-records": return `Delete the records before offset ${each.before_offset} (kafka-delete-records).`;
    case "set": return `Set ${each.key}=${each.value ?? "a limit"}${each.until ? `: it goes ${each.until.ms > now ? at(each.until) : "at the next round"}` : ""}.`;
    default: return each.how;
  }
}

function segment(each) {
  const decision = each.retention;
  let why = decision.because;
  if (decision.goes) why = `goes: ${why}`;
  else if (decision.blocked_by !== null) why = `behind ${decision.blocked_by}`;
  if (each.state === "active") why = `active; ${why}`;
  return [
    String(each.base_offset), number(each.end_offset - each.base_offset), size(each.size_bytes), WHERE[each.place], at(each.record_time.first),
    at(each.record_time.last), at(each.arrival_time.last), each.fault ?? why, at(decision.deadline),
  ];
}
