// The time axis: from times to places and back, its ticks, and a span that broken clocks cannot squash.
// Pure: no document, no network. Times are milliseconds, places are CSS pixels.

const MINUTE = 60000, HOUR = 3600000, DAY = 86400000;
const STEPS = [
  1000, 5000, 15000, 30000, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR,
  12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY,
];
const TICK_WIDTH = 92;
const LEAST_SPAN = 10000, MOST_SPAN = 400 * 366 * DAY;
const EARLIEST_TRUSTED = Date.UTC(1990, 0);
const FAR = 2000; // so many times further back than half of the rest is no place for an axis to begin
const MARGIN = 0.03, AHEAD = 0.12;

/** A span of time laid over a width. */
export class Axis {
  constructor(from, to, width) {
    this.from = from;
    this.to = to;
    this.width = Math.max(1, width);
  }

  /** The place of a time; outside of the width when the time is. */
  x(ms) {
    return ((ms - this.from) / (this.to - this.from)) * this.width;
  }

  /** The time at a place. */
  ms(x) {
    return this.from + (x / this.width) * (this.to - this.from);
  }

  /** Whether the axis shows a time. */
  shows(ms) {
    return ms >= this.from && ms <= this.to;
  }

  /** The same span over another width. */
  over(width) {
    return new Axis(this.from, this.to, width);
  }

  /** Moved by a share of its span. */
  moved(share) {
    const by = (this.to - this.from) * share;
    return new Axis(this.from + by, this.to + by, this.width);
  }

  /** So many times as wide, about its middle, within what can be read. */
  scaled(factor) {
    const middle = (this.from + this.to) / 2;
    const span = Math.min(MOST_SPAN, Math.max(LEAST_SPAN, (this.to - this.from) * factor));
    return new Axis(middle - span / 2, middle + span / 2, this.width);
  }

  /** Ticks at round times in UTC: {ms, text}. */
  ticks() {
    const wanted = ((this.to - this.from) / this.width) * TICK_WIDTH;
    const step = STEPS.find((each) => each >= wanted);
    const found = step === undefined ? this.#calendarTicks(wanted) : this.#evenTicks(step);
    return found.map((ms) => ({ ms, text: label(ms, step ?? 30 * DAY) }));
  }

  #evenTicks(step) {
    const found = [];
    for (let ms = Math.ceil(this.from / step) * step; ms <= this.to; ms += step) found.push(ms);
    return found;
  }

  #calendarTicks(wanted) {
    const months = [1, 3, 6, 12, 24, 60, 120, 240, 600, 1200].find((each) => each * 30 * DAY >= wanted) ?? 2400;
    const first = new Date(this.from);
    let month = Math.ceil((first.getUTCFullYear() * 12 + first.getUTCMonth()) / months) * months;
    const found = [];
    for (;;) {
      const date = new Date(0);
      date.setUTCFullYear(Math.floor(month / 12), month % 12, 1);
      if (!(date.getTime() <= this.to)) return found;
      if (date.getTime() >= this.from) found.push(date.getTime());
      month += months;
    }
  }
}

function label(ms, step) {
  const text = new Date(ms).toISOString();
  const isNewDay = ms % DAY === 0;
  if (step >= 30 * DAY) return text.slice(0, 7);
  if (step >= DAY || isNewDay) return text.slice(5, 10);
  return step >= MINUTE ? text.slice(11, 16) : text.slice(11, 19);
}

/**
 * The span that shows everything there is, but for times that only a broken clock can have made.
 * `oldest`: first times of segments or partitions. Nothing ahead of `now` is trusted.
 */
export function fitted(oldest, now, width) {
  const trusted = oldest.filter((ms) => ms >= EARLIEST_TRUSTED && ms <= now).sort((a, b) => a - b);
  const from = trusted.length ? farthest(trusted, now) : now - HOUR;
  const span = Math.max(now - from, MINUTE);
  return new Axis(from - span * MARGIN, now + span * AHEAD, width);
}

function farthest(trusted, now) {
  const usual = Math.max(MINUTE, now - trusted[Math.floor(trusted.length / 2)]);
  return trusted.find((ms) => now - ms <= usual * FAR) ?? trusted[trusted.length - 1];
}

/** The last so many ms, and a little ahead. */
export function last(span, now, width) {
  return new Axis(now - span, now + span * AHEAD, width);
}

/** How a time off the axis is written beside its mark: the year, or the day when it is near. */
export function offAxis(ms, now) {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return ms > now ? "∞" : "−∞";
  const text = date.toISOString().replace(/^\+0*/, "");
  return Math.abs(ms - now) > 300 * DAY ? text.slice(0, text.indexOf("-", 1)) : text.slice(5, 10);
}

/**
 * Where a bar stands, and the times in it that only a broken clock can have made.
 * `times`: "record" or "arrival". A bar stands where its records came as soon as what they claim cannot be.
 */
export function extent(bar, times, now) {
  const [came, left] = [bar.firstArrival, bar.lastArrival];
  const hasArrival = came >= 0, hasRecord = bar.lastRecord >= 0;
  if (hasArrival && (times === "arrival" || !hasRecord)) return { from: came, to: Math.max(came, left), past: null, future: null };
  if (!hasRecord) return null;
  const first = bar.firstRecord >= 0 ? bar.firstRecord : bar.lastRecord;
  const isFuture = bar.lastRecord > Math.max(now, left) + HOUR;
  const isPast = first < EARLIEST_TRUSTED && (left >= EARLIEST_TRUSTED || bar.lastRecord >= EARLIEST_TRUSTED);
  const to = isFuture ? (hasArrival ? left : now) : bar.lastRecord;
  let from = isPast ? (hasArrival ? came : to) : first;
  if (from > to) from = hasArrival ? Math.min(came, to) : to;
  return { from, to: isPast ? Math.max(from, to) : to, past: isPast ? first : null, future: isFuture ? bar.lastRecord : null };
}
