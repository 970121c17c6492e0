// Drives Chromium through the page: `node browser.mjs SCENARIO ORIGIN FOLDER [JSON]`.
//
// Prints its findings as a line of JSON. Writes screenshots to FOLDER.

import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const require = createRequire(process.env.PAGE_MODULES + "/");
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const [scenario, origin, folder, given] = process.argv.slice(2);
const settings = JSON.parse(given || "{}");
const WIDTHS = [360, 1280, 1920];
const SCHEMES = ["light", "dark"];
const HEIGHT = 900;

mkdirSync(folder, { recursive: true });
const launched = { executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] };
const browser = await chromium.launch(launched);
const problems = [];

// Opens a page that records errors and violations.
async function open(path, { width = 1280, scheme = "light", scripts = true } = {}) {
  const context = await browser.newContext({
    viewport: { width, height: HEIGHT }, colorScheme: scheme, javaScriptEnabled: scripts,
    reducedMotion: "reduce", timezoneId: "UTC", ignoreHTTPSErrors: true,
  });
  const page = await context.newPage();
  const record = (what) => problems.push(`${path} at ${width} ${scheme}: ${what}`);
  page.on("console", (message) => {
    const isExpected = settings.expected && message.text().includes(settings.expected);
    if (["error", "warning"].includes(message.type()) && !isExpected) record(message.text());
  });
  page.on("pageerror", (error) => record(error.message));
  page.on("dialog", (dialog) => {
    record(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(origin)) record(`outside request: ${request.url()}`);
  });
  await page.goto(origin + path);
  return page;
}

async function check(page, name) {
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (overflow > 0) problems.push(`${name}: the page is ${overflow} px wider than the window`);
  // axe is injected by the driver, so the content security policy of the page does not apply.
  await page.evaluate(AXE);
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const found = await page.evaluate((tags) => axe.run(document, { runOnly: tags }), tags);
  for (const violation of found.violations) {
    const nodes = violation.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`);
    problems.push(`${name}: axe ${violation.id}: ${nodes.join("; ")}`);
  }
}

const scenarios = {
  // Every page, at each width and in both colour schemes.
  async pages() {
    const first = await open("/");
    const own = await first.$$eval(".top nav a", (links) => links.map((link) => link.getAttribute("href")));
    await first.context().close();
    const paths = [...new Set([...(settings.only ? [] : own), ...(settings.paths || [])])];
    for (const path of paths) {
      for (const width of WIDTHS) {
        for (const scheme of SCHEMES) {
          const page = await open(path, { width, scheme });
          await page.waitForTimeout(300);
          const words = path.replace(/id=[^&]*%2F/, "").replace(/[^a-z0-9]+/gi, "-");
          const slug = words.replace(/^-|-$/g, "").slice(0, 40) || "home";
          const name = `${slug}-${width}-${scheme}`;
          await page.screenshot({ path: `${folder}/${name}.png` });
          await check(page, name);
          await page.context().close();
        }
      }
    }
    return { paths };
  },

  // Measures the time from a key press to the display of the results.
  async typing() {
    // The browser is already running, with an empty cache.
    await (await open("/search")).context().close();
    const paints = [];
    let page = null;
    for (let round = 0; round < (settings.rounds ?? 1); round++) {
      await page?.context().close();
      page = await open("/search");
      await page.waitForTimeout(500);
      paints.push(await page.evaluate(() =>
        performance.getEntriesByName("first-contentful-paint")[0]?.startTime));
    }
    paints.sort((a, b) => a - b);
    await page.focus("#q");
    for (const word of settings.words) {
      await page.fill("#q", "");
      await page.waitForTimeout(200);
      for (const letter of word) {
        await page.keyboard.type(letter);
        await page.waitForTimeout(settings.pause ?? 120);
      }
      await page.waitForTimeout(300);
    }
    const times = await page.evaluate(() => performance.getEntriesByName("search").map((it) => it.duration));
    times.sort((a, b) => a - b);
    const names = await page.$$eval(".hit a.open", (links) => links.map((link) => link.textContent));
    return { count: times.length, p50: times[times.length >> 1], p95: times[Math.floor(times.length * 0.95)],
      max: times.at(-1), paint: paints[paints.length >> 1], names, address: page.url() };
  },

  // Uses only the keyboard.
  async keys() {
    const page = await open("/search");
    await page.keyboard.press("Escape");
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("/");
    await page.keyboard.type("flour");
    await page.waitForSelector("mark");
    await page.waitForTimeout(500);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    const focused = await page.evaluate(() => document.activeElement.dataset.id);
    await page.keyboard.press("Enter");
    await page.waitForSelector("#preview .document");
    const previewed = await page.getAttribute("#preview .document", "data-document");
    await page.waitForTimeout(200);
    const before = await page.textContent("#preview .hit-count").catch(() => "");
    await page.keyboard.press("n");
    const after = await page.textContent("#preview .hit-count").catch(() => "");
    await check(page, "preview");
    await page.screenshot({ path: `${folder}/preview.png` });
    await page.keyboard.press("Escape");
    const isClosed = await page.isHidden("#preview");
    const back = await page.evaluate(() => document.activeElement.dataset.id);
    await page.fill("#q", "");
    await page.focus("#q");
    await page.keyboard.type("kind:ma");
    await page.waitForSelector("#completions li");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    const completed = await page.inputValue("#q");
    return { focused, previewed, before, after, isClosed, back, completed };
  },

  // Selects a range of bars by dragging, and a facet value by a click.
  async facets() {
    const page = await open("/search");
    const bars = page.locator(".histogram [data-value]");
    await bars.first().scrollIntoViewIfNeeded();
    const [first, last] = [await bars.first().boundingBox(), await bars.last().boundingBox()];
    await page.mouse.move(first.x + 2, first.y + first.height - 2);
    await page.mouse.down();
    await page.mouse.move(last.x + 2, last.y + last.height - 2, { steps: 8 });
    await Promise.all([page.waitForURL(/date=/), page.mouse.up()]);
    const range = new URL(page.url()).searchParams.get("date");
    await page.locator(".facet a.value").first().click();
    await page.waitForURL(/kind=/);
    return { range, kind: new URL(page.url()).searchParams.get("kind") };
  },

  // Documents with markup and scripts are shown as text.
  async hostile() {
    for (const path of settings.paths) {
      const page = await open(path);
      await page.waitForTimeout(300);
      const isMarked = await page.evaluate(() => typeof window.hacked !== "undefined");
      if (isMarked) problems.push(`${path}: a script of a document ran`);
      await page.context().close();
    }
    const page = await open("/search?q=flour");
    for (const link of await page.locator("a.open").all()) {
      await link.click();
      await page.waitForTimeout(200);
    }
    return { title: await page.title() };
  },

  // Texts with markup and scripts are not executed.
  async still() {
    for (const path of settings.paths) {
      const page = await open(path);
      await page.waitForTimeout(300);
      if (await page.evaluate(() => "hacked" in window)) problems.push(`${path}: a script ran`);
      await page.context().close();
    }
    return {};
  },

  // Graphs are drawn, and their newest numbers change.
  async graphs() {
    const page = await open("/state");
    await page.waitForSelector(".plot canvas", { timeout: 20000 });
    const canvases = await page.locator(".plot canvas").count();
    const numbers = () => page.$$eval("[data-now]", (cells) => cells.map((cell) => cell.textContent).join(" "));
    const before = await numbers();
    let isRunning = false;
    for (let attempt = 0; attempt < 40 && !isRunning; attempt += 1) {
      await page.waitForTimeout(250);
      isRunning = (await numbers()) !== before;
    }
    return { canvases, isRunning };
  },

  // Drops an index by keyboard: declines the confirmation first, then accepts it.
  async dropping() {
    const page = await open(settings.path);
    const button = page.getByRole("button", { name: `Drop index ${settings.name}`, exact: true });
    await button.focus();
    await page.keyboard.press("Enter");
    const question = await page.textContent("dialog[open] p");
    await check(page, "question");
    await page.keyboard.press("Escape");
    const isCancelled = (await page.locator("dialog[open]").count()) === 0;
    await button.focus();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await Promise.all([page.waitForURL(/done=dropped/), page.keyboard.press("Enter")]);
    return { question, isCancelled };
  },

  // Imports a file, and cancels the import of another one.
  async importing() {
    const page = await open(settings.path);
    // Large enough to take a while on any machine.
    const network = await page.context().newCDPSession(page);
    const conditions = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 4e6 };
    await network.send("Network.emulateNetworkConditions", conditions);
    await page.setInputFiles("#import-file", settings.file);
    await page.getByRole("button", { name: "Import", exact: true }).click();
    await page.locator("#import-progress progress").waitFor();
    await page.getByText("documents inserted").waitFor();
    const progress = await page.textContent("#import-progress p");
    await page.locator("#import-cancel").scrollIntoViewIfNeeded();
    await page.screenshot({ path: `${folder}/import.png` });
    await page.getByRole("button", { name: "Cancel" }).focus();
    await page.keyboard.press("Enter");
    await page.locator('[data-end="cancelled"]').waitFor();
    const cancelled = await page.textContent("#import-progress");
    await check(page, "cancelled import");
    await page.screenshot({ path: `${folder}/import-cancelled.png` });
    await page.setInputFiles("#import-file", settings.small);
    await page.getByRole("button", { name: "Import", exact: true }).click();
    await page.waitForURL(/done=/);
    return { progress, cancelled, done: await page.textContent(".notice.good") };
  },

  // The preview of each stage is updated while the user types.
  async previews() {
    const page = await open(settings.path);
    const stage = (number) => page.locator(".stage").nth(number);
    await stage(0).locator("textarea").fill("{ number: { $lt: 99 ");
    await stage(0).locator('[role="alert"]').waitFor();
    const mistake = (await page.locator('[role="alert"]').count()) === 1;
    await stage(0).locator("textarea").fill("{ number: { $lt: 99 } }");
    await stage(0).locator(".tree").first().waitFor();
    await page.selectOption("#new", "$count");
    await page.getByRole("button", { name: "Add a stage" }).click();
    await stage(1).locator(".tree").first().waitFor();
    await check(page, "previews");
    await page.screenshot({ path: `${folder}/previews.png` });
    return { mistake, count: (await stage(1).locator(".tree").first().textContent()).trim() };
  },

  // Cancels a slow preview and a slow query.
  async cancelling() {
    const page = await open(settings.path);
    await page.getByRole("button", { name: "Cancel the preview, stage 1" }).waitFor();
    console.log("running");
    const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
    await lines.next();
    await page.getByRole("button", { name: "Cancel the preview, stage 1" }).click();
    const preview = await page.textContent(".stage-preview");
    console.log("cancelled");
    await lines.next();
    // The driver cannot access a page during navigation, so the page itself observes it.
    await page.evaluate(() => {
      const look = setInterval(() => {
        const cancel = document.querySelector("button.cancel:not([hidden])");
        if (!cancel) return;
        clearInterval(look);
        setTimeout(() => cancel.click(), 1000);
      }, 20);
    });
    // The click may not return before the query is cancelled.
    console.log("running");
    await page.getByRole("button", { name: "Show the results" }).click();
    await lines.next();
    const said = page.locator("button.cancel + [role=status]");
    await said.getByText("Cancelled.").waitFor({ timeout: 5000 });
    console.log("cancelled");
    await lines.next();
    await check(page, "cancelled query");
    await page.screenshot({ path: `${folder}/query-cancelled.png` });
    const isHidden = await page.locator("button.cancel").isHidden();
    return { preview, isHidden, address: page.url() };
  },

  // A run that was started from the page shows counters and stages until it is stopped.
  async folderRun() {
    const page = await open("/folders");
    await page.getByRole("button", { name: "Look for changed files" }).click();
    await page.locator("[data-running] .stages li").first().waitFor({ timeout: 30000 });
    await page.getByText(/[1-9]\d* of .* files/).waitFor();
    const text = await page.textContent("[data-running]");
    await page.screenshot({ path: `${folder}/folder-run.png` });
    await page.getByRole("button", { name: "Stop the run" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("The run was stopped").waitFor();
    // The first event may contain an earlier state than the page.
    await page.locator("#stop-run").waitFor({ state: "hidden" });
    await check(page, "stopped run");
    return { text, isHidden: await page.locator("#stop-run").isHidden() };
  },

  // Logs in by keyboard.
  async login() {
    const page = await open("/overview");
    await page.keyboard.type(settings.user);
    await page.keyboard.press("Tab");
    await page.keyboard.type(settings.password);
    await Promise.all([page.waitForURL(/overview$/), page.keyboard.press("Enter")]);
    await page.locator("[data-live] dl").first().waitFor();
    const cookies = await page.context().cookies();
    return { isSecure: cookies.length === 1 && cookies[0].secure && cookies[0].httpOnly, title: await page.title() };
  },

  // Renders the pages of a PDF when they become visible, and steps through the matches.
  async drawings() {
    const page = await open("/search");
    const loaded = [];
    page.on("request", (request) => loaded.push(new URL(request.url()).pathname));
    await page.goto(origin + "/search?q=flourmill");
    await page.waitForTimeout(500);
    const before = loaded.some((path) => path.includes("pdf"));
    await page.locator("a.open").first().click();
    const canvas = (number) => page.locator(`[data-page="${number}"] canvas`);
    await canvas(1).waitFor();
    const ink = await canvas(1).evaluate((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let dark = 0;
      for (let at = 0; at < data.length; at += 4) dark += data[at] < 128 ? 1 : 0;
      return dark;
    });
    await check(page, "pdf");
    await page.screenshot({ path: `${folder}/pdf.png` });
    const first = await page.textContent("#preview .hit-count");
    for (let step = 0; step < 24; step += 1) await page.keyboard.press("n");
    const later = await page.textContent("#preview .hit-count");
    await canvas(25).waitFor();
    const drawn = await page.locator("#preview canvas").count();
    await page.screenshot({ path: `${folder}/pdf-later.png` });
    await page.keyboard.press("p");
    const back = await page.textContent("#preview .hit-count");
    return { before, ink, first, later, back, drawn };
  },

  // Search without scripts.
  async plain() {
    const page = await open("/", { scripts: false });
    await page.fill("#q", "copperhare");
    await Promise.all([page.waitForURL(/q=copperhare/), page.keyboard.press("Enter")]);
    const names = await page.$$eval(".hit a.open", (links) => links.map((link) => link.textContent));
    await Promise.all([page.waitForURL(/document/), page.click(".hit a.open")]);
    const marks = await page.$$eval("mark", (marks) => marks.map((mark) => mark.textContent));
    return { names, marks };
  },

  // The server restarts while the page is open. A line on stdin announces each step.
  async restart() {
    const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
    const page = await open(settings.path);
    await page.waitForTimeout(1500);
    console.log("ready");
    await lines.next();
    await page.waitForSelector("#offline:not([hidden])", { timeout: 15000 });
    console.log("offline");
    await lines.next();
    await page.waitForSelector("#offline", { state: "hidden", timeout: 30000 });
    await page.waitForTimeout(1500);
    return { text: await page.textContent("main") };
  },

  // The screenshots for the README.
  async screenshots() {
    for (const { path, name, scheme, click, width } of settings.pictures) {
      const page = await open(path, { scheme, width: width ?? 1280 });
      if (click) await page.locator(click).first().click();
      await page.waitForTimeout(1200);
      await page.screenshot({ path: `${folder}/${name}.png` });
      await page.context().close();
    }
    return {};
  },
};

let found = {};
try {
  found = await scenarios[scenario]();
} catch (error) {
  problems.push(String(error.stack || error));
}
await browser.close();
console.log(JSON.stringify({ ...found, problems }));
process.exit(0);
