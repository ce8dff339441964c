// Search in the sections of this language: all words must occur, those in headings count more. No index, no network:
// looking through a few hundred kilobytes takes a millisecond, and Chinese needs no word breaks that way.
const field = document.getElementById("search");
const found = document.getElementById("found");
const MOST = 12, AROUND = 60;

function matches(words) {
  const scored = [];
  for (const [address, page, heading, text] of window.SECTIONS) {
    const head = `${page} ${heading}`.toLowerCase(), body = text.toLowerCase();
    if (!words.every((word) => head.includes(word) || body.includes(word))) continue;
    const score = words.filter((word) => head.includes(word)).length;
    scored.push({ score, address, page, heading, text, at: Math.max(0, body.indexOf(words[0])) });
  }
  return scored.sort((a, b) => b.score - a.score).slice(0, MOST);
}

function show() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  found.replaceChildren();
  found.hidden = words.length === 0;
  if (found.hidden) return;
  for (const { address, page, heading, text, at } of matches(words)) {
    const item = document.createElement("li"), link = document.createElement("a"), excerpt = document.createElement("p");
    link.href = address;
    link.textContent = heading && heading !== page ? `${page} › ${heading}` : page;
    excerpt.textContent = text.slice(Math.max(0, at - AROUND), at + 2 * AROUND);
    item.append(link, excerpt);
    found.append(item);
  }
  if (!found.children.length) found.append(Object.assign(document.createElement("li"), { textContent: "–" }));
}

field.addEventListener("input", show);
field.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { field.value = ""; show(); }
  if (event.key === "Enter") found.querySelector("a")?.click();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== field) { event.preventDefault(); field.focus(); }
});
found.addEventListener("click", () => { found.hidden = true; });
// On a phone the list of pages begins closed.
if (window.matchMedia("(max-width: 60rem)").matches) document.querySelector(".pages details").removeAttribute("open");
