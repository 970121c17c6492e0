// Renders the pages of a PDF above their texts when they become visible. pdf.js is loaded with the
// first page.

const CANVASES_MAX = 12;
const PIXELS_MAX = 6e6;
let current = null;

export function drawPages(root) {
  current?.end();
  current = new Drawing(root);
}

class Drawing {
  constructor(root) {
    this.root = root;
    this.canvases = [];
    this.opening = null;
    this.queue = Promise.resolve();
    const look = (entries) => entries.filter((it) => it.isIntersecting).forEach((it) => this.want(it.target));
    this.observer = new IntersectionObserver(look, { rootMargin: "300px 0px" });
    for (const page of root.querySelectorAll("[data-page]")) this.observer.observe(page);
  }

  end() {
    this.observer.disconnect();
    this.opening?.then((pdf) => pdf.loadingTask.destroy()).catch(() => {});
  }

  async open() {
    const pdfjs = await import("./pdf.min.mjs");
    pdfjs.GlobalWorkerOptions.workerSrc = new URL("./pdf.worker.min.mjs", import.meta.url).href;
    return pdfjs.getDocument({
      url: this.root.dataset.pdf, isEvalSupported: false, enableXfa: false, useWasm: false,
      useSystemFonts: true, verbosity: pdfjs.VerbosityLevel.ERRORS,
    }).promise;
  }

  // Renders one page at a time.
  want(section) {
    if (section.querySelector("canvas")) return;
    this.queue = this.queue.then(() => this.draw(section)).catch(() => {
      // The file has changed, is damaged or has a password. Its text remains.
      this.observer.disconnect();
    });
  }

  async draw(section) {
    if (!this.root.isConnected) return this.end();
    if (section.querySelector("canvas")) return;
    this.opening ??= this.open();
    const pdf = await this.opening;
    const number = Number(section.dataset.page);
    if (number > pdf.numPages) return;
    const page = await pdf.getPage(number);
    const natural = page.getViewport({ scale: 1 });
    const width = Math.min(section.clientWidth, 900);
    const wished = (width * devicePixelRatio) / natural.width;
    const most = Math.sqrt(PIXELS_MAX / (natural.width * natural.height));
    const viewport = page.getViewport({ scale: Math.min(wished, most) });
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(viewport.width);
    canvas.height = Math.ceil(viewport.height);
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", section.dataset.label);
    await page.render({ canvas, viewport }).promise;
    section.querySelector("h3").after(canvas);
    this.canvases.push(canvas);
    if (this.canvases.length > CANVASES_MAX) this.forget(this.canvases.shift());
    page.cleanup();
  }

  // The space of the page is kept, so that the layout does not change. It is rendered again when it
  // becomes visible.
  forget(canvas) {
    const section = canvas.parentElement;
    const place = document.createElement("div");
    place.style.height = `${canvas.clientHeight}px`;
    canvas.replaceWith(place);
    canvas.width = canvas.height = 0;
    this.observer.unobserve(section);
    const again = new IntersectionObserver((entries) => {
      if (!entries.some((it) => it.isIntersecting)) return;
      again.disconnect();
      place.remove();
      this.want(section);
    }, { rootMargin: "300px 0px" });
    again.observe(place);
  }
}
