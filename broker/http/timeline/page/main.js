// The page: what is asked of the broker and how often, what people chose, and who shows what came.

import { Api, Refused } from "/page/api.js";
import { fitted, last } from "/page/axis.js";
import { showDirty, showReaders } from "/page/clients.js";
import { showComing } from "/page/coming.js";
import { Detail } from "/page/detail.js";
import { el, fill } from "/page/dom.js";
import { paintScale, palette } from "/page/paint.js";
import { showNodes } from "/page/nodes.js";
import { showQueues } from "/page/queues.js";
import { Rows } from "/page/rows.js";
import { before, Search } from "/page/search.js";
import { showTable } from "/page/table.js";
import { at, counted, number } from "/page/words.js";

const EVERY_MS = 3000, SOON_MS = 300, RETRY_MS = 5000;
const ALL_EVERY = 10; // each so many rounds everything is asked, not only what is in sight
const ROWS = 200, FIRST_ROWS = 12, BARS = 120;
const MOST_TOPICS = 1000;

const node = (id) => document.getElementById(id);
const api = new Api();
const rows = new Rows(node("rows"), node("tip"), { chosen: open, cameIntoSight: () => sooner() });
const search = new Search(api, node("search"), node("when-said"), { rows, choice, changed: show });
const detail = new Detail(api, {
  section: node("detail"), title: node("detail-title"), said: node("detail-said"), table: node("segments"),
  more: node("more-segments"), close: node("close-detail"),
}, (key) => {
  rows.mark(null);
  rows.focus(key);
});

const page = {
  now: null, hold: null, inAll: 0, next: null, cursors: [null], dirty: null, queues: null, fleet: null,
  axis: null, own: null, colours: palette(), paused: false, round: 0, timer: null, busy: false, width: 0,
  turn: 0, // counts what people chose: an answer to what was asked before that is not shown
};

// --- asking ---

/** Which partitions the page is about. */
function choice() {
  const topic = node("topic").value;
  return topic ? { topic } : { internal: node("internal").checked };
}

async function round() {
  clearTimeout(page.timer);
  if (page.busy) return;
  page.busy = true;
  const turn = page.turn;
  let wait = EVERY_MS;
  try {
    if (page.round % ALL_EVERY === 0) await askAll();
    else await askInSight();
    page.round += 1;
    if (lacksInSight()) wait = SOON_MS;
  } catch (error) {
    wait = RETRY_MS;
    page.round = 0;
    if (turn === page.turn) failed(error);
  }
  page.busy = false;
  if (turn !== page.turn) {
    page.round = 0;
    round();
  } else if (page.paused) sooner(); // for what came into sight meanwhile: there is no next round
  else if (!document.hidden) page.timer = setTimeout(round, wait);
}

/** The answer to a question, unless something else was chosen meanwhile. */
async function ask(path, parameters) {
  const turn = page.turn, answer = await api.get(path, parameters);
  if (turn !== page.turn) throw new Error("Something else was chosen.");
  return answer;
}

/** Something came into sight that has no bars yet: it is asked for at once. */
function sooner() {
  if (!page.busy && page.round > 0 && lacksInSight()) askInSight().catch(() => round());
}

/** Whether something in sight has no bars: it came there just now, or the broker still looks up its times. */
function lacksInSight() {
  const seen = rows.inSight;
  return seen !== null && rows.all.slice(seen[0], seen[1] + 1).some((each) => !each.bars.length && each.fault === null);
}

async function askAll() {
  const after = page.cursors.at(-1);
  if (page.now === null) {
    const first = await ask("/api/timeline", { ...choice(), after, limit: FIRST_ROWS, bars: BARS });
    take(first);
    rows.replace(first.partitions, first.columns);
    show();
  }
  const answer = await ask("/api/timeline", { ...choice(), after, limit: ROWS });
  take(answer);
  page.next = answer.next;
  rows.replace(answer.partitions, answer.columns);
  await askInSight();
  page.dirty = await ask("/api/dirty", { topic: node("topic").value, limit: 50 });
  page.queues = await ask("/api/timeline/queues", { topic: node("topic").value, limit: 50 });
  await askFleet();
  await askTopics();
  await detail.refresh();
  show();
}

async function askFleet() {
  try {
    page.fleet = await ask("/api/fleet");
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 403) throw error;
    page.fleet = null; // for those who may describe the cluster
  }
}

async function askInSight() {
  const seen = rows.inSight;
  if (seen === null) return;
  let missing = seen[1] - seen[0] + 1, after = before(rows.all[seen[0]]);
  while (missing > 0 && after !== null) {
    const answer = await ask("/api/timeline", { ...choice(), after, limit: missing, bars: BARS });
    take(answer);
    rows.update(answer.partitions, answer.columns);
    missing -= answer.partitions.length;
    after = answer.next;
  }
  show();
}

async function askTopics() {
  const { topics } = await ask("/api/topics", { limit: MOST_TOPICS });
  const select = node("topic"), chosen = select.value;
  const names = topics.map((each) => each.topic);
  if (chosen && !names.includes(chosen)) names.unshift(chosen);
  fill(select, el("option", { value: "" }, "All topics"), ...names.map((each) => el("option", { value: each }, each)));
  select.value = chosen;
}

function take(answer) {
  page.now = answer.now.ms;
  page.hold = answer.hold;
  page.inAll = answer.partitions_in_all;
  connected();
}

// --- telling how it goes ---

function connected() {
  node("token-form").hidden = true;
  said(page.paused ? "Paused" : "Live", page.paused ? "paused" : "good");
  const hold = page.hold;
  fill(node("alerts"), ...(hold === null ? [] : [el("p", {}, el("strong", {}, "The broker doubts its clock: "),
    `${hold.because.replaceAll("_", " ")}. Nothing goes or rolls by time until ${at(hold.until)}. If the clock is right: `, el("code", {}, "horolog clock confirm"))]));
}

function failed(error) {
  if (error instanceof Refused && error.wantsToken) {
    node("token-form").hidden = false;
    said("Needs to know who you are", "bad");
    fill(node("alerts"), el("p", {}, error.message));
    return;
  }
  if (error instanceof Refused && error.code === "unknown_topic") return chooseTopic("");
  const message = error instanceof Refused ? error.message : "The broker does not answer. What you see is what it last said; this page asks again.";
  said(error instanceof Refused && error.status === 503 ? "Not ready" : "No answer", "bad");
  fill(node("alerts"), el("p", {}, message));
}

function said(text, kind) {
  const status = node("status");
  if (status.textContent !== text) status.textContent = text;
  status.className = kind;
}

// --- showing ---

function show() {
  if (page.now === null) return;
  node("clock").textContent = at({ ms: page.now });
  page.width = node("scale").parentElement.clientWidth;
  page.axis = axisNow();
  const view = { axis: page.axis, colours: page.colours, times: node("times").value, now: page.now, searched: search.searched };
  node("scale").style.height = "38px";
  paintScale(node("scale"), page.axis, view);
  rows.paint(view);
  for (const sign of document.querySelectorAll(".of-tier")) sign.hidden = rows.all.every((each) => each.store === null);
  node("nothing").hidden = rows.all.length > 0;
  showComing(node("coming"), node("totals"), rows.all, page.now, page.inAll);
  showReaders(node("readers"), rows.all);
  if (page.dirty !== null) showDirty(node("dirty"), page.dirty);
  if (page.queues !== null) showQueues(node("queues"), page.queues);
  showFleet();
  if (node("as-table").open) showTable(node("table"), rows.all, page.now);
  showPages();
}

function showFleet() {
  const isOne = page.fleet !== null && page.fleet.nodes !== null;
  node("fleet").hidden = !isOne;
  if (isOne) showNodes(node("nodes"), page.fleet);
}

function axisNow() {
  const range = node("range").value;
  if (range === "own" && page.own !== null) return page.own.over(page.width);
  if (range !== "fit") return last(Number(range), page.now, page.width);
  return fitted(oldest(), page.now, page.width);
}

/** First times by the clock that is shown, of bars where they are known, else of partitions. */
function oldest() {
  const byArrival = node("times").value === "arrival";
  return rows.all.flatMap((row) => {
    if (row.bars.length) return row.bars.filter((each) => each.size).map((each) => (byArrival ? each.firstArrival : each.firstRecord));
    return row.oldest_record === null ? [] : [row.oldest_record.ms];
  });
}

function showPages() {
  const first = page.cursors.length === 1, only = first && page.next === null;
  node("previous").hidden = first;
  node("following").hidden = page.next === null;
  const text = only ? "" : `${counted(rows.all.length, "partition")} of ${number(page.inAll)}`;
  if (node("pages-said").textContent !== text) node("pages-said").textContent = text;
}

// --- what people do ---

async function open(row, bar) {
  rows.mark(row.key);
  await detail.show(row, bar);
}

function chooseTopic(topic) {
  node("topic").value = topic;
  startAt([null]);
}

function startAt(cursors) {
  page.turn += 1;
  page.cursors = cursors;
  page.round = 0;
  page.now = null;
  search.forget();
  round();
}

function move(change) {
  if (page.axis === null) return;
  page.own = change(page.axis);
  node("range").querySelector("[value=own]").hidden = false;
  node("range").value = "own";
  show();
}

node("topic").addEventListener("change", () => chooseTopic(node("topic").value));
node("internal").addEventListener("change", () => startAt([null]));
node("times").addEventListener("change", show);
node("range").addEventListener("change", show);
node("earlier").addEventListener("click", () => move((axis) => axis.moved(-0.4)));
node("later").addEventListener("click", () => move((axis) => axis.moved(0.4)));
node("closer").addEventListener("click", () => move((axis) => axis.scaled(0.5)));
node("wider").addEventListener("click", () => move((axis) => axis.scaled(2)));
node("as-table").addEventListener("toggle", show);
node("following").addEventListener("click", () => startAt([...page.cursors, page.next]));
node("previous").addEventListener("click", () => startAt(page.cursors.slice(0, -1)));
node("pause").addEventListener("click", () => {
  page.paused = !page.paused;
  node("pause").setAttribute("aria-pressed", String(page.paused));
  if (page.paused) {
    clearTimeout(page.timer);
    connected();
  } else round();
});
node("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  api.useToken(node("token").value.trim());
  node("token").value = "";
  round();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !page.paused) round();
});
for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
  window.matchMedia(query).addEventListener("change", () => {
    page.colours = palette();
    show();
  });
}
new ResizeObserver(() => {
  if (node("scale").parentElement.clientWidth !== page.width) show();
}).observe(node("scale").parentElement);

round();
