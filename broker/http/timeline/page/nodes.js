// Nodes of a fleet: what each leads and takes, and how far its clock is off.

import { fillTable } from "/page/dom.js";
import { at, number, size, span } from "/page/words.js";

const NODES = [
  { title: "node", number: true }, { title: "address", wide: true }, { title: "state" }, { title: "lease renewed" }, { title: "partitions", number: true },
  { title: "from producers, a second", number: true }, { title: "its clock" }, { title: "life", number: true }, { title: "version" },
];

/** The answer of /api/fleet, of a broker that has others. */
export function showNodes(table, answer) {
  const rows = answer.nodes.map((each) => [
    number(each.node), each.address, each.state, at(each.renewed), number(each.partitions), size(each.bytes_per_second), clock(each.clock_ahead_ms),
    number(each.life), each.version,
  ]);
  const left = answer.shards_without_owner;
  const caption = `This is node ${answer.node ?? "–"}` + (left > 0 ? `; ${number(left)} of ${number(answer.shards)} shards have no leader` : "");
  fillTable(table, caption, NODES, rows, "No node is known.");
}

function clock(ahead) {
  if (ahead === null) return "–";
  return ahead === 0 ? "right" : `${span(Math.abs(ahead))} ${ahead > 0 ? "ahead" : "behind"}`;
}
