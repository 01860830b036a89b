"""The colours of a partition's picture on the time page, read back from its canvas."""

PAINTED = """canvas => {
  const style = getComputedStyle(document.documentElement);
  const ratio = canvas.width / canvas.clientWidth;
  const rgb = name => {
    const hex = style.getPropertyValue(`--${name}`).trim();
    return [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));
  };
  const image = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const is = (x, y, [r, g, b]) => {
    const at = (y * image.width + x) * 4;
    return image.data[at] === r && image.data[at + 1] === g && image.data[at + 2] === b;
  };
  const has = (from, to, colour) => {
    for (let x = Math.max(0, from); x < Math.min(image.width, to); x += 1)
      for (let y = 0; y < image.height; y += 1) if (is(x, y, colour)) return true;
    return false;
  };
  const bad = rgb("bad"), edge = Math.round(12 * ratio);
  const columns = [];
  const kinds = ["closed", "active", "overdue", "goes"].map(rgb);
  for (let x = 0; x < image.width - edge; x += 4)
    if (kinds.some(colour => has(x, x + 1, colour))) columns.push(x);
  return { width: image.width, columns,
    bad: { left: has(0, edge, bad), right: has(image.width - edge, image.width, bad) } };
}"""
"""A function of a canvas: its width, the columns with a bar, bad times at its edges."""
