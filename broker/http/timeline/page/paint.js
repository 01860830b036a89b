// Draws one row of the timeline, and the scale above the rows. Knows places and colours, no data but what it is given.

import { extent, offAxis } from "/page/axis.js";

export const ROW_HEIGHT = 52, SCALE_HEIGHT = 38;
const TOP = 14, BASE = 38; // bars stand between the two
const LEAST_HEIGHT = 5, MARK = 5;
const STATES = ["closed", "active", "goes", "overdue", "compacted"];
const STRIP = 3; // the height of the line below a bar that the store has
const COLOURS = [...STATES, "store", "text", "quiet", "line", "shade", "now", "horizon", "bad", "found", "page"];

/** The colours of the style sheet as they are now (light, dark, forced), and the hatchings made of them. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const colours = Object.fromEntries(COLOURS.map((each) => [each, style.getPropertyValue(`--${each}`).trim()]));
  return { ...colours, font: `11px ${style.getPropertyValue("--font").trim()}`, hatched: {
    goes: hatching(colours.goes, colours.page, 1), overdue: hatching(colours.overdue, colours.page, -1),
  } };
}

function hatching(colour, ground, slope) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d");
  pen.fillStyle = ground;
  pen.fillRect(0, 0, 6, 6);
  pen.strokeStyle = colour;
  pen.lineWidth = 2.6;
  for (const shift of [-6, 0, 6]) {
    pen.beginPath();
    pen.moveTo(shift, slope > 0 ? 6 : 0);
    pen.lineTo(shift + 6, slope > 0 ? 0 : 6);
    pen.stroke();
  }
  return pen.createPattern(tile, "repeat");
}

/** A pen on an empty canvas of this size in CSS pixels, sharp on any screen. */
function cleared(canvas, width, height) {
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== across || canvas.height !== down) [canvas.width, canvas.height] = [across, down];
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

/** One partition: `row` has bars, figures and the landing of a search, if any. */
export function paintRow(canvas, row, axis, { colours, times, now, searched }) {
  const pen = cleared(canvas, axis.width, ROW_HEIGHT);
  pen.font = colours.font;
  shadeOld(pen, row, axis, colours);
  rule(pen, axis.x(now), colours.now, []);
  pen.fillStyle = colours.line;
  pen.fillRect(0, BASE, axis.width, 1);
  const marks = { past: null, future: null, before: false, after: false };
  for (const bar of row.bars) paintBar(pen, bar, row, axis, colours, times, now, marks);
  for (const each of row.dirty) paintDirty(pen, each.worst_timestamp.ms, axis, colours, marks);
  paintEdges(pen, axis, colours, marks, now);
  for (const each of row.upcoming) if (each.at !== null) paintDeadline(pen, each, axis, colours);
  if (searched !== null) paintSearch(pen, searched, row.landing, axis, colours);
}

function shadeOld(pen, row, axis, colours) {
  const horizon = row.horizon;
  if (horizon === null) return;
  const x = axis.x(horizon);
  if (x > 0) {
    pen.fillStyle = colours.shade;
    pen.fillRect(0, TOP - 6, Math.min(x, axis.width), BASE - TOP + 6);
  }
  rule(pen, x, colours.horizon, [4, 3]);
}

function rule(pen, x, colour, dashes, top = 4, bottom = ROW_HEIGHT - 2) {
  if (x < 0 || x > pen.canvas.width) return;
  pen.save();
  pen.strokeStyle = colour;
  pen.lineWidth = 1.5;
  pen.setLineDash(dashes);
  pen.beginPath();
  pen.moveTo(x, top);
  pen.lineTo(x, bottom);
  pen.stroke();
  pen.restore();
}

function paintBar(pen, bar, row, axis, colours, times, now, marks) {
  const stands = extent(bar, times, now);
  if (stands === null || !bar.size) return;
  if (stands.future !== null) marks.future = Math.max(marks.future ?? 0, stands.future);
  if (stands.past !== null) marks.past = Math.min(marks.past ?? Infinity, stands.past);
  if (stands.to < axis.from) marks.before = true;
  if (stands.from > axis.to) marks.after = true;
  if (stands.to < axis.from || stands.from > axis.to) return;
  const left = Math.max(0, axis.x(stands.from)), right = Math.min(axis.width, axis.x(stands.to));
  const width = Math.max(2.5, right - left - (right - left > 5 ? 1 : 0));
  const share = row.segmentBytes ? Math.min(1, bar.size / bar.segments / row.segmentBytes) : 1;
  const height = LEAST_HEIGHT + (BASE - TOP - LEAST_HEIGHT) * share;
  const state = STATES[bar.state];
  pen.fillStyle = colours.hatched[state] ?? colours[state];
  pen.globalAlpha = bar.place === "store" ? 0.25 : 1;
  pen.fillRect(left, BASE - height, width, height);
  pen.globalAlpha = 1;
  if (bar.place !== "local") stored(pen, left, width, colours);
  pen.strokeStyle = colours[state];
  pen.lineWidth = 1;
  if (width > 3) pen.strokeRect(left + 0.5, BASE - height + 0.5, width - 1, height - 1);
  if (stands.future !== null) reach(pen, right, axis.width - 12, BASE - height / 2, colours);
  if (stands.past !== null) reach(pen, 12, left, BASE - height / 2, colours);
}

/** The line below a bar: the store has what it shows. */
function stored(pen, left, width, colours) {
  pen.fillStyle = colours.store;
  pen.fillRect(left, BASE + 2, width, STRIP);
}

/** The thin line from a bar to the time that it claims, off the axis. */
function reach(pen, from, to, y, colours) {
  if (to <= from) return;
  pen.save();
  pen.strokeStyle = colours.bad;
  pen.setLineDash([2, 3]);
  pen.beginPath();
  pen.moveTo(from, y);
  pen.lineTo(to, y);
  pen.stroke();
  pen.restore();
}

function paintDirty(pen, ms, axis, colours, marks) {
  if (ms < axis.from) marks.past = Math.min(marks.past ?? Infinity, ms);
  else if (ms > axis.to) marks.future = Math.max(marks.future ?? 0, ms);
  else triangle(pen, axis.x(ms), TOP - 3, "down", colours.bad);
}

function paintEdges(pen, axis, colours, marks, now) {
  const middle = (TOP + BASE) / 2;
  if (marks.before && marks.past === null) triangle(pen, 1, middle, "left", colours.quiet);
  if (marks.after && marks.future === null) triangle(pen, axis.width - 1, middle, "right", colours.quiet);
  if (marks.past !== null) edge(pen, marks.past, now, 1, "left", middle, colours);
  if (marks.future !== null) edge(pen, marks.future, now, axis.width - 1, "right", middle, colours);
}

/** A claimed time off the axis: an arrow at its end, and the year. */
function edge(pen, ms, now, x, side, y, colours) {
  triangle(pen, x, y, side, colours.bad, MARK + 2);
  pen.textAlign = side === "left" ? "left" : "right";
  written(pen, offAxis(ms, now), x, TOP - 3, colours.bad, colours);
}

function written(pen, text, x, y, colour, colours) {
  pen.textBaseline = "alphabetic";
  pen.lineWidth = 3;
  pen.strokeStyle = colours.page;
  pen.strokeText(text, x, y);
  pen.fillStyle = colour;
  pen.fillText(text, x, y);
}

function triangle(pen, x, y, side, colour, reach = MARK) {
  const [dx, dy] = { left: [1, 0], right: [-1, 0], down: [0, -1], up: [0, 1] }[side];
  pen.fillStyle = colour;
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(x + dx * reach * 1.6 - dy * reach, y + dy * reach * 1.6 + dx * reach);
  pen.lineTo(x + dx * reach * 1.6 + dy * reach, y + dy * reach * 1.6 - dx * reach);
  pen.fill();
}

function paintDeadline(pen, event, axis, colours) {
  if (!axis.shows(event.at.ms)) return;
  const colour = { removal: colours.goes, roll: colours.active, compaction: colours.compacted }[event.what];
  triangle(pen, axis.x(event.at.ms), BASE + 1, "up", colour, 3.5);
}

function paintSearch(pen, searched, landing, axis, colours) {
  rule(pen, axis.x(searched), colours.found, [1, 3], 0, ROW_HEIGHT);
  if (!landing || landing.time === null) return;
  const x = Math.min(axis.width - 1, Math.max(1, axis.x(landing.time)));
  rule(pen, x, colours.found, [], 0, BASE);
  triangle(pen, x, BASE + 1, "up", colours.found, 4);
  pen.textAlign = x > axis.width - 90 ? "right" : "left";
  written(pen, String(landing.offset), x + (pen.textAlign === "left" ? 7 : -7), ROW_HEIGHT - 3, colours.found, colours);
}

/** The scale: ticks, the day it begins with, and now. */
export function paintScale(canvas, axis, { colours, now }) {
  const pen = cleared(canvas, axis.width, SCALE_HEIGHT);
  pen.font = colours.font;
  pen.textBaseline = "alphabetic";
  const nowX = axis.x(now);
  for (const { ms, text } of axis.ticks()) {
    const x = axis.x(ms);
    pen.fillStyle = colours.line;
    pen.fillRect(x, SCALE_HEIGHT - 6, 1, 6);
    pen.textAlign = x < 20 ? "left" : x > axis.width - 20 ? "right" : "center";
    pen.fillStyle = colours.text;
    pen.fillText(text, x, SCALE_HEIGHT - 9);
  }
  pen.fillStyle = colours.quiet;
  pen.textAlign = "left";
  pen.fillText(new Date(axis.from).toISOString().slice(0, 10), 0, 11);
  if (nowX < 0 || nowX > axis.width) return;
  pen.textAlign = nowX > axis.width - 20 ? "right" : "center";
  if (nowX > 80) written(pen, "now", nowX, 11, colours.now, colours);
  rule(pen, nowX, colours.now, [], 14, SCALE_HEIGHT);
}

/** The bar under a place of a row, the topmost first; null for none. */
export function barAt(row, axis, times, now, x) {
  for (const bar of [...row.bars].reverse()) {
    const stands = bar.size ? extent(bar, times, now) : null;
    if (stands !== null && axis.x(stands.from) - 2 <= x && x <= Math.max(axis.x(stands.to), axis.x(stands.from) + 3)) return bar;
  }
  return null;
}
