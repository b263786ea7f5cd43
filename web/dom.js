// Small helpers to make elements. Texts are only ever set as text: names in a profile may be
// anything, `</script>` too.

// el("button", {class: "chip", title: "…", onclick: f}, "text", child, ...)
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);

// A canvas as large as its place on the screen, in device pixels; its context counts in CSS pixels.
export function fitCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.max(1, Math.round(width * ratio));
  const h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

// Runs `draw` once before the next frame, however often it is asked for.
export function oncePerFrame(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
}

// `text` with the parts that match in <mark>.
export function marked(text, search) {
  if (!search) return [text];
  const parts = [];
  let at = 0;
  for (const [start, end] of search.spans(text)) {
    if (start > at) parts.push(text.slice(at, start));
    parts.push(el("mark", {}, text.slice(start, end)));
    at = end;
  }
  parts.push(text.slice(at));
  return parts;
}
