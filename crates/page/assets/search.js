// The search: results while the user types, keyboard shortcuts, preview, completions.

import { fetchPart } from "./common.js";
import { enhanceDocument, stepHit } from "./document.js";

const root = document.querySelector("[data-search]");
const path = root?.dataset.search;
const field = document.getElementById("q");
const form = field?.form;
const results = document.getElementById("results");
const facets = document.getElementById("facets");
const problem = document.getElementById("query-problem");
const preview = document.getElementById("preview");
const previewContent = document.getElementById("preview-content");
const previewClose = document.getElementById("preview-close");
const order = document.getElementById("sort");
const completions = document.getElementById("completions");

// The delay of the facets after the last key press. They are more expensive than results.
const FACETS_PAUSE_MS = 120;

// The sort order that is used without a parameter.
let isOrderChosen = new URLSearchParams(location.search).has("sort");
let running = null;
let facetsTimer = 0;
let selected = -1;
let shownId = null;

// Returns the address of the current search, without parameters of single requests.
function currentAddress() {
  const parts = new URLSearchParams(new FormData(form));
  if (!parts.get("q")?.trim()) parts.delete("q");
  if (parts.get("sort") === defaultOrder()) parts.delete("sort");
  const like = new URLSearchParams(location.search).get("like");
  if (like) parts.set("like", like);
  return parts;
}

function defaultOrder() {
  return field.value.trim() ? "relevance" : "newest";
}

function withQuery(base, parts) {
  const text = parts.toString();
  return text ? `${base}?${text}` : base;
}

function showProblem(text) {
  problem.hidden = !text;
  problem.textContent = text || "";
}

// Returns the error of the query, if a part contains one.
function problemOf(part) {
  const shown = new DOMParser().parseFromString(part, "text/html");
  return shown.querySelector("[data-problem]")?.dataset.problem;
}

// Searches for the content of the form. Aborts a search that still runs.
async function search({ isTyping = false, push = false } = {}) {
  running?.abort();
  clearTimeout(facetsTimer);
  if (!isOrderChosen) order.value = defaultOrder();
  const own = (running = new AbortController());
  const parts = currentAddress();
  const address = withQuery(path, parts);
  if (isTyping) parts.set("typing", "1");
  performance.mark("search-start");
  try {
    const part = await fetchPart(withQuery(`${path}/results`, parts), { signal: own.signal });
    if (own !== running) return;
    const wrong = problemOf(part);
    if (wrong) {
      // Errors are not shown, because the query may be unfinished.
      if (isTyping) complete();
      else {
        results.innerHTML = "";
        showProblem(wrong);
      }
      return;
    }
    results.innerHTML = part;
    performance.measure("search", "search-start");
    showProblem("");
    select(-1);
    remember(address, push);
    if (isTyping) complete();
    const pause = isTyping ? FACETS_PAUSE_MS : 0;
    facetsTimer = setTimeout(() => updateFacets(parts, own), pause);
  } catch (error) {
    if (error.name !== "AbortError" && own === running && error.part) results.innerHTML = error.part;
  }
}

// Updates the address and the title of the page.
function remember(address, push) {
  if (push) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  document.title = (field.value.trim() || "Search") + " · Windrow";
}

async function updateFacets(parts, own) {
  try {
    const part = await fetchPart(withQuery(`${path}/facets`, parts), { signal: own.signal });
    if (own !== running) return;
    const open = openFolders();
    facets.innerHTML = part;
    for (const summary of facets.querySelectorAll(".tree summary")) {
      if (open.has(summary.getAttribute("aria-label"))) summary.parentElement.open = true;
    }
    const total = facets.querySelector("[data-total]")?.dataset.total;
    const place = results.querySelector("[data-total]");
    if (place && total) place.replaceWith(total);
  } catch (error) {
    if (error.name !== "AbortError") facets.innerHTML = "";
  }
}

function openFolders() {
  const open = facets.querySelectorAll(".tree details[open] > summary");
  return new Set([...open].map((summary) => summary.getAttribute("aria-label")));
}

// The arrow keys select results.
function hits() {
  return [...results.querySelectorAll(".hit")];
}

function select(number, { focus = false } = {}) {
  const all = hits();
  selected = Math.max(-1, Math.min(number, all.length - 1));
  all.forEach((hit, at) => hit.classList.toggle("selected", at === selected));
  const link = all[selected]?.querySelector("a.open");
  if (!link) return;
  if (focus) link.focus({ preventScroll: true });
  all[selected].scrollIntoView({ block: "nearest" });
  if (!preview.hidden && isWide()) openPreview(link, { focus: false });
}

function isWide() {
  return matchMedia("(min-width: 1100px)").matches;
}

let opening = null;

async function openPreview(link, { focus = true } = {}) {
  opening?.abort();
  const own = (opening = new AbortController());
  try {
    const part = await fetchPart(link.href, { signal: own.signal });
    if (own !== opening) return;
    previewContent.innerHTML = part;
  } catch (error) {
    if (error.name === "AbortError") return;
    previewContent.innerHTML = error.part || "";
  }
  shownId = link.dataset.id ?? shownId;
  preview.hidden = false;
  root.classList.add("with-preview");
  document.body.classList.toggle("preview-above", !isWide());
  preview.scrollTop = 0;
  enhanceDocument(previewContent);
  if (focus) previewContent.querySelector("#document-title")?.focus({ preventScroll: true });
}

function closePreview() {
  if (preview.hidden) return false;
  opening?.abort();
  preview.hidden = true;
  root.classList.remove("with-preview");
  document.body.classList.remove("preview-above");
  const all = hits();
  const at = all.findIndex((hit) => hit.querySelector("a.open")?.dataset.id === shownId);
  const link = all[at >= 0 ? at : selected]?.querySelector("a.open");
  (link || field).focus({ preventScroll: true });
  return true;
}

// Completions of the word at the cursor.
let completing = null;
let offered = [];
let offeredAt = -1;

async function complete() {
  completing?.abort();
  const own = (completing = new AbortController());
  hideCompletions();
  if (field.selectionStart !== field.value.length || !field.value) return;
  try {
    const address = withQuery(`${path}/complete`, new URLSearchParams({ q: field.value }));
    const found = JSON.parse(await fetchPart(address, { signal: own.signal }));
    if (own !== completing || document.activeElement !== field) return;
    offered = found;
    completions.replaceChildren(...found.map(completionItem));
    completions.hidden = !found.length;
    field.setAttribute("aria-expanded", String(!!found.length));
  } catch {
    // The completions are left out if the request fails.
  }
}

function completionItem(offer, at) {
  const item = document.createElement("li");
  item.id = `completion-${at}`;
  item.setAttribute("role", "option");
  const shown = document.createElement("code");
  shown.textContent = offer.shown;
  const meaning = document.createElement("span");
  meaning.textContent = offer.meaning;
  item.append(shown, meaning);
  item.addEventListener("mousedown", (event) => {
    event.preventDefault();
    accept(offer);
  });
  return item;
}

function hideCompletions() {
  offered = [];
  offeredAt = -1;
  completions.hidden = true;
  field.setAttribute("aria-expanded", "false");
  field.removeAttribute("aria-activedescendant");
}

function offer(at) {
  offeredAt = (at + offered.length) % offered.length;
  [...completions.children].forEach((item, number) => {
    item.setAttribute("aria-selected", String(number === offeredAt));
  });
  field.setAttribute("aria-activedescendant", `completion-${offeredAt}`);
}

function accept(chosen) {
  field.value = chosen.query.endsWith(":") ? chosen.query : chosen.query + " ";
  hideCompletions();
  field.focus();
  search({ isTyping: true });
}

function pressInField(event) {
  if (offered.length && event.key === "Tab" && !event.shiftKey) {
    event.preventDefault();
    accept(offered[Math.max(offeredAt, 0)]);
  } else if (offered.length && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    event.preventDefault();
    offer(offeredAt + (event.key === "ArrowDown" ? 1 : offeredAt < 0 ? 0 : -1));
  } else if (offeredAt >= 0 && event.key === "Enter") {
    event.preventDefault();
    accept(offered[offeredAt]);
  } else if (event.key === "ArrowDown") {
    event.preventDefault();
    select(0, { focus: true });
  } else if (event.key === "Escape") {
    if (offered.length) hideCompletions();
    else if (!closePreview() && field.value) {
      field.value = "";
      search();
    }
    event.preventDefault();
  }
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === field) return pressInField(event);
  if (event.target.closest("input, select, textarea")) return;
  const steps = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 };
  if (event.key === "Escape") {
    if (!closePreview()) {
      field.focus();
      field.select();
    }
  } else if (event.key in steps && !event.target.closest("#preview")) {
    event.preventDefault();
    if (selected <= 0 && steps[event.key] < 0) {
      select(-1);
      field.focus();
    } else select(selected + steps[event.key], { focus: true });
  } else if ((event.key === "n" || event.key === "p") && !preview.hidden) {
    stepHit(previewContent, event.key === "n" ? 1 : -1);
  } else if (event.key === "o") {
    const open = preview.hidden ? null : previewContent.querySelector("[data-open]");
    if (open) open.click();
  }
}

// Dragging over bars selects a range of them.
function enhanceHistogram() {
  let from = null;
  const barAt = (event) => document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-value]");
  const bars = () => [...facets.querySelectorAll(".histogram [data-value]")];
  facets.addEventListener("pointerdown", (event) => {
    from = event.target.closest(".histogram [data-value]");
    if (from) event.preventDefault();
  });
  facets.addEventListener("dragstart", (event) => event.preventDefault());
  facets.addEventListener("pointermove", (event) => {
    const to = from && barAt(event);
    if (!to) return;
    const all = bars();
    const ends = [all.indexOf(from), all.indexOf(to)].sort((a, b) => a - b);
    all.forEach((bar, at) => bar.classList.toggle("in-range", at >= ends[0] && at <= ends[1]));
  });
  window.addEventListener("pointerup", (event) => {
    const to = from && barAt(event);
    const start = from;
    from = null;
    if (!to || !start || to === start) return;
    const ends = [start.dataset.value, to.dataset.value].sort();
    const parts = currentAddress();
    parts.set("date", `${ends[0]}..${ends[1]}`);
    location.assign(withQuery(path, parts));
  });
}

function begin() {
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-controls", "completions");
  field.setAttribute("aria-expanded", "false");
  field.setAttribute("aria-autocomplete", "list");
  field.addEventListener("input", () => {
    hideCompletions();
    search({ isTyping: true });
  });
  field.addEventListener("blur", hideCompletions);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    hideCompletions();
    search({ push: true });
  });
  order.addEventListener("change", () => {
    isOrderChosen = true;
    search();
  });
  document.addEventListener("keydown", press);
  results.addEventListener("click", (event) => {
    const link = event.target.closest("a.open");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    select(hits().indexOf(link.closest(".hit")));
    openPreview(link);
  });
  previewContent.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-id], a[data-form]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    openPreview(link);
  });
  previewClose.addEventListener("click", closePreview);
  window.addEventListener("popstate", () => location.reload());
  enhanceHistogram();
  // On a narrow page, the facets are initially collapsed.
  if (!matchMedia("(min-width: 860px)").matches) document.querySelector(".facets-frame").open = false;
}

if (root) begin();
