/* A text file, line by line, in batches; nothing of it stays on the server, and as many lines come back as went. */
(function (CH) {
"use strict";

const { el, t } = CH;
const FIRST = 8, QUICK = 1, SLOW = 4; // lines of the first batch; seconds that a batch should take at least, at most
const part = (id) => document.getElementById(id);
const job = { phase: "none", name: "", saved: "", href: "", done: 0, of: 0, problem: null, complaint: "", failed: [],
  warnings: {} };
let working = new AbortController(), began = 0, early = null; // a file chosen before the server said what it has

// What cannot be text is told with what to do
async function read(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (bytes.includes(0)) return { complaint: t("file.binary", { name: file.name }) };
  try {
    return { lines: new TextDecoder("utf-8", { fatal: true }).decode(bytes).split("\n") };
  } catch (problem) {
    if (!(problem instanceof TypeError)) throw problem;
    return { complaint: t("file.encoding", { name: file.name }) };
  }
}

const length = (line) => [...line].length;

// How many of the lines from `at` on go together
function together(lines, at, size, limits) {
  let end = at, characters = 0;
  while (end < lines.length && end - at < size) {
    characters += length(lines[end]);
    if (end > at && characters > limits.request_characters) break;
    end += 1;
  }
  return end;
}

function tell(problem) {
  job.problem = problem;
  CH.drawFile();
}

// The translations of some lines; a line that cannot be translated stands as it was and is counted
async function batch(lines, at, model, signal) {
  try {
    const answer = await CH.insist(() => CH.ask("v1/translate", { texts: lines, model }, signal), tell, signal);
    const warned = answer.results.flatMap((one) => one.warnings);
    for (const word of warned) job.warnings[word] = (job.warnings[word] || 0) + 1;
    return answer.results.map((one) => one.text.replace(/[\r\n]+/g, " "));
  } catch (problem) {
    if (!(problem instanceof CH.Refusal) || problem.wantsKey) throw problem;
    if (lines.length === 1) {
      job.failed.push(at + 1);
      return lines;
    }
    const half = Math.ceil(lines.length / 2);
    return [...await batch(lines.slice(0, half), at, model, signal),
      ...await batch(lines.slice(half), at + half, model, signal)];
  }
}

async function translateAll(lines, model, limits, signal) {
  const found = [];
  for (let size = FIRST; found.length < lines.length;) {
    const at = found.length, end = together(lines, at, size, limits), started = performance.now();
    found.push(...await batch(lines.slice(at, end), at, model, signal));
    const seconds = (performance.now() - started) / 1000;
    size = CH.clamp(seconds < QUICK ? 2 * size : seconds > SLOW ? Math.ceil(size / 2) : size, 1, limits.texts);
    Object.assign(job, { done: found.length, problem: null });
    CH.drawFile();
  }
  return found;
}

CH.translateFile = async function (file) {
  const { info, model } = CH.live();
  if (!info) early = file;
  if (!info || CH.writes(model) || job.phase === "working") return;
  if (job.href) URL.revokeObjectURL(job.href);
  Object.assign(job, { phase: "none", name: file.name, done: 0, problem: null, complaint: "", failed: [], warnings: {},
    href: "" });
  const { lines, complaint } = await read(file);
  const long = lines ? lines.findIndex((line) => length(line) > info.limits.characters) : -1;
  if (complaint || long >= 0) {
    job.complaint = complaint || t("file.long", { n: long + 1, length: length(lines[long]),
      of: info.limits.characters });
    return CH.drawFile();
  }
  working = new AbortController();
  began = performance.now();
  const places = CH.range(lines.length).filter((i) => lines[i].trim()); // blank lines stay
  Object.assign(job, { phase: "working", of: places.length });
  CH.drawFile();
  try {
    const texts = places.map((i) => lines[i].replace(/\r$/, "")), found = await translateAll(texts, model.name,
      info.limits, working.signal);
    places.forEach((i, k) => { lines[i] = found[k] + (lines[i].endsWith("\r") ? "\r" : ""); });
    job.failed = job.failed.map((n) => places[n - 1] + 1);
    const name = file.name.replace(/(\.[^.]*)?$/, (suffix) => "." + model.target + (suffix || ".txt"));
    Object.assign(job, { phase: "done", saved: name,
      href: URL.createObjectURL(new Blob([lines.join("\n")], { type: "text/plain;charset=utf-8" })) });
  } catch (problem) {
    job.phase = problem.name === "AbortError" ? "cancelled" : "none";
    if (job.phase === "none" && !(problem instanceof CH.Refusal)) throw problem;
    job.problem = job.phase === "none" ? problem : null;
  }
  CH.drawFile();
};

CH.takeEarlyFile = function () {
  if (early) CH.translateFile(early);
  early = null;
};

const take = (files) => { if (files.length) CH.translateFile(files[0]); };

function left() {
  const seconds = Math.round((performance.now() - began) / 1000 / job.done * (job.of - job.done));
  return job.done && seconds >= 1 ? t("file.left", { seconds }) : "";
}

function progress() {
  return [el("label", { for: "bar" }, t("file.working", { name: job.name })),
    el("progress", { id: "bar", max: Math.max(1, job.of), value: job.done }),
    el("span", { class: "note" }, t("file.lines", { n: CH.count(job.done), of: CH.count(job.of) }), left()),
    CH.button("cancel-file", t("file.cancel"), () => working.abort())];
}

function result() {
  const told = (word) => CH.hasText("warning." + word) ? t("warning." + word) : word;
  return [el("p", {}, t("file.done", { n: CH.count(job.of), name: job.name }), " ",
    el("a", { id: "download", href: job.href, download: job.saved }, t("file.save", { name: job.saved }))),
    job.failed.length ? el("p", { class: "bad" }, t("file.failed", { n: job.failed.length,
      lines: job.failed.slice(0, 5).join(t("list.comma")) + (job.failed.length > 5 ? " …" : "") })) : "",
    el("ul", { class: "note" }, Object.entries(job.warnings).map(([word, n]) => el("li", {}, t("file.warned",
      { n: CH.count(n), told: told(word) }))))];
}

CH.drawFile = function () {
  const input = el("input", { type: "file", id: "choose-file", class: "unseen", accept: "text/*,.txt,.tsv,.csv,.md",
    change: (event) => take(event.target.files) });
  const isWorking = job.phase === "working", said = job.complaint || (job.problem ? job.problem.words : "");
  const active = document.activeElement?.id;
  part("file").replaceChildren(el("h2", { class: "tag" }, t("file.title")),
    isWorking ? el("div", { class: "controls" }, progress())
      : el("div", { class: "controls" }, input, el("label", { for: "choose-file", class: "button" }, t("file.choose")),
        el("span", { class: "note" }, t("file.drop"))),
    el("div", { role: "status" }, said ? el("p", { class: "bad" }, said) : "", job.phase === "cancelled"
      ? CH.note("file.cancelled") : "", job.phase === "done" ? result() : ""));
  if (["cancel-file", "choose-file"].includes(active)) part(active)?.focus({ preventScroll: true });
};

// A file that is dropped anywhere is meant for this, and not to be opened instead of the page
document.addEventListener("dragover", (event) => {
  if (event.dataTransfer.types.includes("Files")) event.preventDefault();
});
document.addEventListener("drop", (event) => {
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  take(event.dataTransfer.files);
});
})(window.CH = window.CH || {});
