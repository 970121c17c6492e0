// Uploads a file while the server inserts its documents. The progress is requested by a random id.

import { fetchPart, formToken } from "./common.js";

const form = document.getElementById("import");
const shown = document.getElementById("import-error");
const file = document.getElementById("import-file");
const text = document.getElementById("import-text");
const progress = document.getElementById("import-progress");
const cancelButton = document.getElementById("import-cancel");
const PROGRESS_MS = 300;
let running = null;

if (form) {
  document.getElementById("import-file-field").hidden = false;
  file.addEventListener("change", () => {
    const name = file.files[0]?.name ?? "";
    form.elements.format.value = name.toLowerCase().endsWith(".csv") ? "csv" : "json";
  });
  form.addEventListener("submit", send);
  cancelButton.addEventListener("click", cancel);
  window.addEventListener("beforeunload", (event) => {
    if (running) event.preventDefault();
  });
}

function fail(message) {
  shown.textContent = message;
  shown.hidden = false;
  shown.scrollIntoView({ block: "nearest" });
}

function randomNumber() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function withQuery(address, parts) {
  return `${address}?${new URLSearchParams(parts)}`;
}

// Uploads the file. The promise resolves when the request ends, also after an error: the progress
// contains the result.
function upload(number, body) {
  const request = new XMLHttpRequest();
  const ended = new Promise((resolve) => request.addEventListener("loadend", resolve));
  request.open("POST", withQuery(form.dataset.file, { import: number, format: form.elements.format.value }));
  request.setRequestHeader("Content-Type", "application/octet-stream");
  request.setRequestHeader("X-Form-Token", formToken());
  request.setRequestHeader("X-Part", "1");
  request.send(body);
  return { request, ended };
}

function setRunning(is) {
  form.querySelector("[type=submit]").disabled = Boolean(is);
  cancelButton.hidden = !is;
  cancelButton.disabled = false;
  running = is;
}

async function send(event) {
  event.preventDefault();
  const chosen = file.files[0];
  if (running) return;
  if (Boolean(chosen) === Boolean(text.value.trim())) {
    fail(form.dataset.both);
    return;
  }
  shown.hidden = true;
  progress.replaceChildren();
  const body = chosen ?? new Blob([text.value]);
  const number = randomNumber();
  const { request, ended } = upload(number, body);
  setRunning({ number, request });
  let isOver = false;
  ended.then(() => (isOver = true));
  try {
    await follow(number, body.size, request, () => isOver);
  } catch (error) {
    const page = new DOMParser().parseFromString(error.part ?? "", "text/html");
    fail(page.body.textContent.trim() || error.message);
  } finally {
    request.abort();
    setRunning(null);
  }
}

// Shows the progress until the import has ended.
async function follow(number, total, request, isOver) {
  for (;;) {
    const wasOver = isOver();
    const part = await fetchPart(withQuery(form.dataset.progress, { import: number, total }));
    const isUnknown = part.includes('data-end="unknown"');
    // The body of a refused request is the error message.
    if (isUnknown && wasOver) throw Object.assign(new Error(), { part: request.responseText || part });
    if (!isUnknown) progress.innerHTML = part;
    const end = progress.querySelector("[data-end]");
    if (end?.dataset.address) {
      running = null;
      location.assign(end.dataset.address);
    }
    if (end) return;
    await new Promise((resolve) => setTimeout(resolve, PROGRESS_MS));
  }
}

async function cancel() {
  if (!running) return;
  const { number, request } = running;
  cancelButton.disabled = true;
  const headers = { "X-Form-Token": formToken(), "Content-Type": "application/x-www-form-urlencoded" };
  try {
    await fetchPart(form.dataset.cancel, { method: "POST", headers, body: new URLSearchParams({ import: number }) });
  } finally {
    // The server may wait for bytes that will not be sent.
    request.abort();
  }
}
