// Zoom of the large pictures, by their viewBox: wheel, pinch, drag, buttons and keys.
const MOST_ZOOM = 16;
const SWIPE = 60; // Pixels that a finger moves sideways to turn to the next answer

const isZoomed = (svg) => svg.viewBox.baseVal.width < svg.whole.width * 0.999;

function moveView(svg, x, y, width) {
  const { whole } = svg;
  const height = (width * whole.height) / whole.width;
  const within = (value, most) => Math.min(Math.max(value, 0), most);
  svg.setAttribute("viewBox", [within(x, whole.width - width), within(y, whole.height - height), width, height].join(" "));
  svg.classList.toggle("zoomed", isZoomed(svg));
  svg.afterMove?.();
}

// Zooms so that what is at (x, y), in pixels of the original, stays where it is.
function zoomAt(svg, factor, x, y) {
  const view = svg.viewBox.baseVal;
  const width = Math.min(svg.whole.width, Math.max(svg.whole.width / MOST_ZOOM, view.width / factor));
  const share = width / view.width;
  moveView(svg, x - (x - view.x) * share, y - (y - view.y) * share, width);
}

const zoomable = () => [...document.querySelectorAll(".zoomable")];

function zoomAll(factor) {
  for (const svg of zoomable()) {
    const view = svg.viewBox.baseVal;
    zoomAt(svg, factor, view.x + view.width / 2, view.y + view.height / 2);
  }
}

function panAll(right, down) {
  for (const svg of zoomable()) {
    const view = svg.viewBox.baseVal;
    moveView(svg, view.x + (right * view.width) / 5, view.y + (down * view.height) / 5, view.width);
  }
}

const onPicture = (svg, event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());

function zoomWithWheel(svg, event) {
  if (event.deltaY > 0 && !isZoomed(svg)) return; // The page scrolls
  event.preventDefault();
  const { x, y } = onPicture(svg, event);
  zoomAt(svg, Math.exp(-event.deltaY / 300), x, y);
}

// Fingers or a mouse: two zoom, one moves a picture that is zoomed, a finger turns to another answer.
function followPointers(svg, onSwipe) {
  const held = new Map();
  let start = null;
  const apart = ([a, b]) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
  svg.addEventListener("pointerdown", (event) => {
    if (held.size === 0) start = event;
    held.set(event.pointerId, event);
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => {
    const before = held.get(event.pointerId);
    if (!before) return;
    const from = [...held.values()];
    held.set(event.pointerId, event);
    if (held.size === 2) {
      start = null;
      const [a, b] = [...held.values()];
      const { x, y } = onPicture(svg, { clientX: (a.clientX + b.clientX) / 2, clientY: (a.clientY + b.clientY) / 2 });
      zoomAt(svg, apart([a, b]) / apart(from), x, y);
    } else if (isZoomed(svg)) {
      start = null;
      const view = svg.viewBox.baseVal;
      const [old, now] = [onPicture(svg, before), onPicture(svg, event)];
      moveView(svg, view.x + old.x - now.x, view.y + old.y - now.y, view.width);
    }
  });
  for (const end of ["pointerup", "pointercancel"]) {
    svg.addEventListener(end, (event) => {
      held.delete(event.pointerId);
      const [right, down] = start ? [event.clientX - start.clientX, event.clientY - start.clientY] : [0, 0];
      if (end === "pointerup" && event.pointerType === "touch" && Math.abs(right) > Math.max(SWIPE, 2 * Math.abs(down))) onSwipe(right < 0 ? 1 : -1);
      start = null;
    });
  }
}

function makeZoomable(svg, onSwipe) {
  const { width, height } = svg.viewBox.baseVal;
  svg.whole = { width, height };
  svg.classList.add("zoomable");
  svg.addEventListener("wheel", (event) => zoomWithWheel(svg, event), { passive: false });
  followPointers(svg, onSwipe);
  return svg;
}
