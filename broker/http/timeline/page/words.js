// How numbers, times and names are shown. Pure: no document, no network.

const UNITS = [["y", 31557600000], ["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]];
const SIZES = [["EiB", 2 ** 60], ["PiB", 2 ** 50], ["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];
const CALENDAR = 8.64e15; // beyond it no Date exists
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]|[\ud800-\udfff]/gu;

/** A stretch of time in its two largest units: "6 d 23 h"; below a second in ms. */
export function span(ms) {
  const sign = ms < 0 ? "-" : "";
  let left = Math.abs(ms);
  if (left < 1000) return `${sign}${Math.round(left)} ms`;
  const parts = [];
  for (const [unit, one] of UNITS) {
    const count = Math.floor(left / one);
    left -= count * one;
    if (count || parts.length) parts.push(count ? `${count} ${unit}` : "");
    if (parts.length === 2) break;
  }
  return sign + parts.filter(Boolean).join(" ");
}

/** "in 3 h 12 min", "2 min ago", "now". */
export function distance(ms, now) {
  if (Math.abs(ms - now) < 1000) return "now";
  return ms > now ? `in ${span(ms - now)}` : `${span(now - ms)} ago`;
}

/** To the second in UTC; milliseconds beyond the calendar; "–" for no time. */
export function when(ms) {
  if (ms === null || ms === undefined || ms < 0) return "–";
  if (ms > CALENDAR) return `${ms} ms`;
  return new Date(ms).toISOString().replace(/^\+0*/, "").slice(0, -5).replace("T", " ");
}

/** The ms of an instant in an answer; null for none. */
export function msOf(instant) {
  return instant ? instant.ms : null;
}

/** An instant of an answer, to the second. */
export function at(instant) {
  return when(msOf(instant));
}

/** Bytes as people read them: "1.4 GiB". */
export function size(bytes) {
  for (const [unit, one] of SIZES) if (Math.abs(bytes) >= one) return `${(bytes / one).toFixed(1)} ${unit}`;
  return `${bytes} B`;
}

/** With the thousands set apart. */
export function number(count) {
  return String(count).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** "1 segment", "2 segments". */
export function counted(count, one) {
  return `${number(count)} ${one}${count === 1 ? "" : "s"}`;
}

/** A name that a client chose: what cannot be seen, or turns the text around, is written out. */
export function name(text) {
  const shown = String(text).replace(UNSEEN, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);
  return shown === "" ? "(no name)" : shown;
}

/** The user of a client, without the type of its principal. */
export function user(principal) {
  return name(String(principal).replace(/^User:/, ""));
}

/** A partition as the command line writes it. */
export function place(topic, partition) {
  return `${name(topic)}-${partition}`;
}
