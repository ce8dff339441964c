/* Language and theme: shared with the views by the address, and there before any view is. */
(function (CH) {
"use strict";

const hash = () => new URLSearchParams(location.hash.slice(1));
const known = (name, choices) => choices.includes(hash().get(name)) ? hash().get(name) : choices[0];
const preferred = () => (navigator.language || "en").startsWith("zh") ? ["zh", "en"] : ["en", "zh"];

const language = CH.language = () => CH.state ? CH.state.lang : known("lang", preferred());

// The theme that was chosen, or auto
const chosenTheme = CH.chosenTheme = () => CH.state ? CH.state.theme : known("theme", ["auto", "light", "dark"]);

CH.isDark = () => chosenTheme() === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches
  : chosenTheme() === "dark";

CH.choose = function (patch) {
  if (CH.state) return CH.set(patch);
  const chosen = hash();
  for (const name in patch) chosen.set(name, patch[name]);
  history.replaceState(null, "", "#" + chosen);
  return CH.redraw();
};

// A language's name in the language of the page
CH.nameOf = function (code) {
  try {
    return new Intl.DisplayNames([language()], { type: "language" }).of(code);
  } catch (unknown) {
    if (!(unknown instanceof RangeError)) throw unknown;
    return code; // a name that is no language's
  }
};
})(window.CH = window.CH || {});
