// Previews of the stages, as soon as they are changed. A newer change cancels the previews before.

import { fetchPart, formToken } from "./common.js";

const builder = document.getElementById("builder");
const PAUSE_MS = 400;
let running = null;
let pause = 0;

async function showPreviews(from) {
  running?.abort();
  const own = new AbortController();
  running = own;
  for (const part of builder.querySelectorAll(".stage-preview")) {
    if (Number(part.dataset.upto) < from) continue;
    const fields = new URLSearchParams(new FormData(builder));
    fields.set("upto", part.dataset.upto);
    part.setAttribute("aria-busy", "true");
    try {
      const headers = { "X-Form-Token": formToken(), "Content-Type": "application/x-www-form-urlencoded" };
      const markup = await fetchPart(builder.dataset.preview, { method: "POST", headers, body: fields, signal: own.signal });
      if (part.innerHTML !== markup) part.innerHTML = markup;
    } catch (error) {
      if (error.name === "AbortError") return;
      part.innerHTML = error.part ?? "";
    } finally {
      part.removeAttribute("aria-busy");
    }
  }
}

builder.addEventListener("input", (event) => {
  const stage = event.target.closest(".stage");
  if (!stage) return;
  clearTimeout(pause);
  const from = Number(stage.querySelector(".stage-preview").dataset.upto);
  pause = setTimeout(() => showPreviews(from), PAUSE_MS);
});

window.addEventListener("pagehide", () => running?.abort());
showPreviews(0);
