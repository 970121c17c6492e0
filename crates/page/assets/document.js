// A document: steps through the matches, and highlights words in rendered documents.

// The maximum number of highlighted words in a rendered document.
const MARKS_MAX = 2000;

export function enhanceDocument(root) {
  const formatted = root.querySelector(".formatted");
  if (formatted) markWords(formatted, JSON.parse(formatted.dataset.words || "[]"));
  const pdf = root.querySelector("[data-pdf]");
  if (pdf) import("./pdf_pages.js").then((drawings) => drawings.drawPages(pdf));
  const links = root.querySelector(".hit-links");
  if (!links) return;
  const count = root.querySelectorAll("mark[id]").length;
  links.hidden = count === 0;
  if (!count) return;
  links.dataset.at = "0";
  for (const link of links.querySelectorAll("[data-step]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      stepHit(root, Number(link.dataset.step));
    });
  }
  stepHit(root, 1);
}

// Shows the next or the previous match.
export function stepHit(root, step) {
  const marks = [...root.querySelectorAll("mark[id]")];
  const links = root.querySelector(".hit-links");
  if (!marks.length || !links) return;
  const at = (Number(links.dataset.at) + step + marks.length - 1) % marks.length;
  links.dataset.at = String(at + 1);
  links.querySelector(".hit-count").textContent = `${at + 1} / ${marks.length}`;
  root.querySelectorAll("mark.current").forEach((mark) => mark.classList.remove("current"));
  marks[at].classList.add("current");
  // Scrolls only the preview and not the page around it.
  const frame = marks[at].closest(".preview");
  if (frame) {
    const place = marks[at].getBoundingClientRect().top - frame.getBoundingClientRect().top;
    frame.scrollTop += place - frame.clientHeight / 2;
  } else marks[at].scrollIntoView({ block: "center" });
}

function markWords(root, words) {
  if (!words.length) return;
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${escaped.join("|")})(?![\\p{L}\\p{N}])`, "giu");
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  let number = 0;
  for (const node of nodes) {
    const text = node.data;
    const found = [...text.matchAll(pattern)];
    if (!found.length || number + found.length > MARKS_MAX) continue;
    const pieces = [];
    let end = 0;
    for (const match of found) {
      pieces.push(text.slice(end, match.index));
      const mark = document.createElement("mark");
      mark.id = `hit-${++number}`;
      mark.textContent = match[0];
      pieces.push(mark);
      end = match.index + match[0].length;
    }
    pieces.push(text.slice(end));
    node.replaceWith(...pieces);
  }
}

const own = document.querySelector("main > .panel .document");
if (own) enhanceDocument(own.parentElement);
