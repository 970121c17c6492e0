// A file is sent as it is, with its format in the address.

import { fetchPart, formToken } from "./common.js";

const form = document.getElementById("import");
const shown = document.getElementById("import-error");
const file = document.getElementById("import-file");
const text = document.getElementById("import-text");

if (form) {
  document.getElementById("import-file-field").hidden = false;
  file.addEventListener("change", () => {
    const name = file.files[0]?.name ?? "";
    form.elements.format.value = name.toLowerCase().endsWith(".csv") ? "csv" : "json";
  });
  form.addEventListener("submit", send);
}

function fail(message) {
  shown.textContent = message;
  shown.hidden = false;
  shown.scrollIntoView({ block: "nearest" });
}

async function send(event) {
  event.preventDefault();
  const chosen = file.files[0];
  if (Boolean(chosen) === Boolean(text.value.trim())) {
    fail(form.dataset.both);
    return;
  }
  const button = form.querySelector("button");
  button.disabled = true;
  shown.hidden = true;
  try {
    const address = form.action + "?format=" + encodeURIComponent(form.elements.format.value);
    const headers = { "Content-Type": "application/octet-stream", "X-Form-Token": formToken() };
    location.assign(await fetchPart(address, { method: "POST", headers, body: chosen ?? text.value }));
  } catch (error) {
    const page = new DOMParser().parseFromString(error.part ?? "", "text/html");
    fail(page.body.textContent.trim() || error.message);
  } finally {
    button.disabled = false;
  }
}
