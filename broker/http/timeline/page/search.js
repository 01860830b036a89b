// Where a search by time lands: in every partition of the page, by any of the three clocks.

import { Refused } from "/page/api.js";
import { at, counted, when } from "/page/words.js";

const MOST_ANSWERS = 12; // each is cut after a second; what is then still missing is said

/** Asks, and tells the landing of each partition to `landed`. */
export class Search {
  #api;
  #form;
  #said;

  constructor(api, form, said, { rows, choice, changed }) {
    this.#api = api;
    this.#form = form;
    this.#said = said;
    this.rows = rows;
    this.choice = choice;
    this.changed = changed;
    this.searched = null;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.find();
    });
    form.elements["forget"].addEventListener("click", () => this.forget());
  }

  /** Runs the search that the form holds; says what came of it in one sentence. */
  async find() {
    const text = this.#form.elements["when"].value.trim();
    if (!text) return this.forget();
    this.#said.textContent = "Searching…";
    this.#form.elements["when"].removeAttribute("aria-invalid");
    try {
      const found = await this.#all(text);
      this.searched = found.timestamp.ms;
      this.#said.textContent = sentence(found, this.#form.elements["search-clock"].value);
      this.#form.elements["forget"].hidden = false;
    } catch (error) {
      this.#said.textContent = error instanceof Refused ? error.message : "Nobody answers: try again.";
      this.#form.elements["when"].setAttribute("aria-invalid", "true");
    }
    this.changed();
  }

  /** No search is shown any more. */
  forget() {
    this.searched = null;
    for (const row of this.rows.all) row.landing = null;
    this.#said.textContent = "";
    this.#form.elements["forget"].hidden = true;
    this.#form.elements["when"].value = "";
    this.changed();
  }

  /** Page by page, over the partitions that are shown. */
  async #all(text) {
    const total = { timestamp: null, landed: 0, none: 0, faults: 0, left: 0, only: null };
    const clock = this.#form.elements["search-clock"].value;
    const rows = this.rows.all;
    let after = rows.length ? before(rows[0]) : null, missing = rows.length, timestamp = text;
    for (let answers = 0; missing > 0 && answers < MOST_ANSWERS; answers += 1) {
      const answer = await this.#api.get("/api/timeline/lookup", { timestamp, clock, ...this.choice(), after, limit: missing });
      total.timestamp = answer.timestamp;
      timestamp = String(answer.timestamp.ms); // "-1h" means one time in all of them
      for (const each of answer.partitions) this.#landed(each, total);
      missing -= answer.partitions.length;
      after = answer.next;
      if (after === null) break;
    }
    if (total.timestamp === null) throw new Refused(0, "nothing", "There are no partitions to search in.");
    total.left = Math.max(0, missing);
    return total;
  }

  #landed({ topic, partition, found, fault }, total) {
    const row = this.rows.byKey.get(`${topic}:${partition}`);
    if (fault !== null) total.faults += 1;
    else if (found === null) total.none += 1;
    else total.landed += 1;
    if (row === undefined) return;
    row.landing = found === null ? { offset: null, segment: null, time: null } : { offset: found.offset, segment: found.segment, time: found.time.ms };
    total.only = { found, row };
  }
}

/** The cursor that makes an answer begin with this partition. */
export function before(row) {
  return `${row.topic}:${row.partition - 1}`;
}

function sentence({ timestamp, landed, none, faults, left, only }, clock) {
  const time = when(timestamp.ms);
  if (landed + none + faults === 1 && only?.found) {
    const { offset, segment, record_time: record, arrival_time: arrival } = only.found;
    return `${time} UTC lands at offset ${offset} in segment ${segment}: its record claims ${at(record)}, it came ${at(arrival)}.`;
  }
  const parts = [`${time} UTC, by ${clock === "record" ? "record time" : clock === "arrival" ? "arrival" : "the earlier of both"}: lands in ${counted(landed, "partition")}`];
  if (none) parts.push(`${counted(none, "partition")} with nothing at or after it (a reader starts at the end)`);
  if (faults) parts.push(`${counted(faults, "partition")} offline`);
  if (left) parts.push(`${counted(left, "partition")} not searched: choose a topic`);
  return `${parts.join("; ")}.`;
}
