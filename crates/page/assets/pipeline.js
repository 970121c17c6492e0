// Updates the previews of the stages when they are changed. A newer change aborts earlier previews.

import { fetchPart, formToken } from "./common.js";

const builder = document.getElementById("builder");
const PAUSE_MS = 400;
const CANCEL_AFTER_MS = 300;
let running = null;
let pause = 0;

async function showPreviews(from) {
  running?.abort();
  const own = new AbortController();
  running = own;
  for (const part of builder.querySelectorAll(".stage-preview")) {
    if (Number(part.dataset.upto) < from) continue;
    if (own.signal.aborted) return;
    await showPreview(part, own.signal);
  }
}

// A slow preview can be cancelled, together with those of the later stages, which would be slow as
// well.
async function showPreview(part, signal) {
  const cancel = part.parentElement.querySelector(".stage-cancel");
  const fields = new URLSearchParams(new FormData(builder));
  fields.set("upto", part.dataset.upto);
  part.setAttribute("aria-busy", "true");
  const timer = setTimeout(() => (cancel.hidden = false), CANCEL_AFTER_MS);
  try {
    const headers = { "X-Form-Token": formToken(), "Content-Type": "application/x-www-form-urlencoded" };
    const markup = await fetchPart(builder.dataset.preview, { method: "POST", headers, body: fields, signal });
    if (part.innerHTML !== markup) part.innerHTML = markup;
  } catch (error) {
    if (error.name !== "AbortError") part.innerHTML = error.part ?? "";
  } finally {
    clearTimeout(timer);
    cancel.hidden = true;
    part.removeAttribute("aria-busy");
  }
}

builder.addEventListener("click", (event) => {
  const cancel = event.target.closest(".stage-cancel");
  if (!cancel) return;
  running?.abort();
  const part = cancel.parentElement.querySelector(".stage-preview");
  part.textContent = part.dataset.cancelled;
  cancel.closest(".stage").querySelector("textarea").focus();
});

builder.addEventListener("input", (event) => {
  const stage = event.target.closest(".stage");
  if (!stage) return;
  clearTimeout(pause);
  const from = Number(stage.querySelector(".stage-preview").dataset.upto);
  pause = setTimeout(() => showPreviews(from), PAUSE_MS);
});

window.addEventListener("pagehide", () => running?.abort());
showPreviews(0);
