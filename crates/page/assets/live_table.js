// Tables that the server sends repeatedly, and confirmations before a form is sent.

// Elements are matched by their id, so that open details and the focus are preserved.
function replace(element, markup) {
  const focused = document.activeElement?.id;
  const inside = element.contains(document.activeElement);
  const open = [...element.querySelectorAll("details[open][id]")].map((it) => it.id);
  const frame = element.querySelector(".table-frame");
  const left = frame?.scrollLeft ?? 0;
  element.innerHTML = markup;
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  const again = element.querySelector(".table-frame");
  if (again) again.scrollLeft = left;
  if (!inside) return;
  if (focused && document.getElementById(focused)) document.getElementById(focused).focus({ preventScroll: true });
  else again?.focus({ preventScroll: true });
}

for (const element of document.querySelectorAll('[data-live-event="table"]')) {
  element.addEventListener("table", (event) => replace(element, event.detail));
}
