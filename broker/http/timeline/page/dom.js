// Elements made of text. Nothing that comes from outside is ever read as markup.

/** An element; `attributes` are set as they are, `class` too; children are nodes or text. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((each) => each !== null && each !== undefined && each !== ""));
  return made;
}

/** A name that somebody chose, kept apart from the direction of the text around it. */
export function named(text) {
  return el("bdi", {}, text);
}

/** What stands in a node becomes these; nothing is touched when it says the same already. */
export function fill(node, ...children) {
  const holder = document.createElement(node.tagName);
  holder.append(...children);
  if (!saysTheSame(holder, node)) node.replaceChildren(...holder.childNodes);
}

function saysTheSame(one, other) {
  if (one.childNodes.length !== other.childNodes.length) return false;
  return [...one.childNodes].every((each, index) => each.isEqualNode(other.childNodes[index]));
}

/** A table: caption, columns ({title, number, wide}), and rows of cells; the first cell heads its row. */
export function fillTable(table, caption, columns, rows, empty) {
  const head = columns.map(({ title, number, wide }) => el("th", { scope: "col", class: classOf({ number, wide }) }, title));
  const body = rows.map((cells) => el("tr", {}, ...cells.map((cell, index) => cellOf(cell, columns[index], index))));
  if (!rows.length) body.push(el("tr", {}, el("td", { colspan: columns.length, class: "quiet" }, empty)));
  fill(table, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body));
}

function classOf({ number, wide }) {
  return number ? "number" : wide ? "wide" : null;
}

function cellOf(content, column, index) {
  const attributes = { class: classOf(column) };
  return index ? el("td", attributes, content) : el("th", { scope: "row", ...attributes }, content);
}
