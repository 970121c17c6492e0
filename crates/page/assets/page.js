// For all pages: live parts, and a note while the server is not reachable.

import { setOffline } from "./common.js";

// The content of an element with data-live is replaced by the events of a stream. The stream is
// closed while the page is hidden, because browsers limit the number of connections to a server.
const RETRY_MS = 2000;

function watch(element) {
  let source = null;
  let retry = 0;
  const close = () => {
    clearTimeout(retry);
    if (source) source.close();
    source = null;
  };
  const open = () => {
    close();
    source = new EventSource(element.dataset.live);
    source.onmessage = (event) => {
      setOffline(false);
      const name = element.dataset.liveEvent;
      if (name) element.dispatchEvent(new CustomEvent(name, { detail: event.data }));
      else element.innerHTML = event.data;
    };
    source.addEventListener("problem", (event) => {
      element.dispatchEvent(new CustomEvent("problem", { detail: event.data, bubbles: true }));
    });
    source.onerror = () => {
      setOffline(true);
      // Browsers do not reconnect a stream that the server has refused.
      if (source && source.readyState === EventSource.CLOSED) retry = setTimeout(open, RETRY_MS);
    };
    source.onopen = () => setOffline(false);
  };
  const follow = () => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", follow);
  window.addEventListener("pagehide", close);
  follow();
}

document.querySelectorAll("[data-live]").forEach(watch);

// If the links do not fit on one line, scrolls to the link of the current page.
for (const link of document.querySelectorAll("nav > [aria-current]")) {
  const nav = link.parentElement;
  if (nav.scrollWidth > nav.clientWidth) nav.scrollLeft = link.offsetLeft - nav.offsetLeft - 16;
}

// "/" focuses the first search field of the page.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const field = document.querySelector('input[type="search"]');
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
});

// Adds a cancel button to forms that may take long. When the request is aborted, the server
// interrupts its command.
const CANCEL_AFTER_MS = 300;

for (const form of document.querySelectorAll("form[data-cancel]")) {
  const button = document.createElement("button");
  const said = document.createElement("span");
  let timer = 0;
  const show = (isWaiting) => {
    clearTimeout(timer);
    button.hidden = !isWaiting;
    form.setAttribute("aria-busy", String(isWaiting));
  };
  button.type = "button";
  button.className = "cancel";
  button.textContent = form.dataset.cancel;
  said.setAttribute("role", "status");
  said.className = "muted";
  form.addEventListener("submit", (event) => {
    said.textContent = "";
    (event.submitter ?? form.querySelector("[type=submit]")).after(button, said);
    timer = setTimeout(() => show(!event.defaultPrevented), CANCEL_AFTER_MS);
  });
  button.addEventListener("click", () => {
    window.stop();
    show(false);
    said.textContent = form.dataset.cancelled;
    form.querySelector("[type=submit]").focus();
  });
  show(false);
  window.addEventListener("pageshow", () => show(false));
}
