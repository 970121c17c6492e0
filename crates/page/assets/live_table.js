// Tables that the server sends again and again, and questions before a form is sent.

// What is open or has the focus stays so: elements keep their id.
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
