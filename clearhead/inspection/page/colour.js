/* One ramp that needs no sense of hue (its lightness only falls, or only rises), and one for signs. */
(function (CH) {
"use strict";

// From the paper's colour to the ink's: on a light page nothing is light, on a dark page nothing is dark
const STOPS = {
  ramplight: [[250, 249, 244], [240, 226, 150], [176, 166, 118], [98, 105, 116], [0, 32, 77]],
  rampdark: [[24, 28, 36], [20, 52, 100], [104, 108, 118], [190, 178, 104], [255, 236, 96]],
  signslight: [[33, 102, 172], [146, 197, 222], [247, 246, 243], [244, 165, 100], [178, 72, 10]],
  signsdark: [[120, 184, 240], [52, 96, 142], [28, 31, 38], [140, 80, 36], [250, 164, 92]],
};

const table = (stops) => CH.range(256).map((step) => {
  const place = step / 255 * (stops.length - 1), i = Math.min(Math.floor(place), stops.length - 2);
  return stops[i].map((channel, c) => Math.round(channel + (stops[i + 1][c] - channel) * (place - i)));
});
for (const name in STOPS) STOPS[name] = table(STOPS[name]);

let theme = "light";
CH.theme = () => theme;

// Look which theme is in use: paper is always light
CH.useTheme = function () {
  const isPaper = matchMedia("print").matches, isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  theme = isPaper ? "light" : CH.state.theme !== "auto" ? CH.state.theme : isDark ? "dark" : "light";
};

// Red, green and blue of a weight between 0 and 1
CH.ramp = (value, on = theme) => STOPS["ramp" + on][Math.round(CH.clamp(value, 0, 1) * 255)];

// Red, green and blue of a value between -1 (blue) and 1 (orange)
CH.signs = (value) => STOPS["signs" + theme][Math.round((CH.clamp(value, -1, 1) + 1) * 127.5)];

CH.css = (rgb) => "rgb(" + rgb.join(",") + ")";

// Black or white, whichever is read better on this colour
CH.inkOn = (rgb) => 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] > 140 ? "#14181f" : "#ffffff";

CH.shade = (rgb) => ({ background: CH.css(rgb), color: CH.inkOn(rgb) });

const found = {};

// A colour of the style sheet as a canvas understands it; asked for once in each theme
CH.colour = function (name) {
  const { style } = document.body, key = name + theme;
  if (found[key]) return found[key];
  style.setProperty("color", "var(--" + name + ")");
  found[key] = getComputedStyle(document.body).color;
  style.removeProperty("color");
  return found[key];
};

// A ramp as a strip with its two ends named
CH.legend = function (low, high, colour) {
  const cell = (i) => CH.svg("rect", { x: i, width: 1.2, height: 8, fill: CH.css(colour(i / 63)) });
  const strip = CH.svg("svg", { viewBox: "0 0 64 8", class: "ramp", preserveAspectRatio: "none" },
    CH.range(64).map(cell));
  return CH.el("span", { class: "legend" }, low, strip, high);
};
})(window.CH = window.CH || {});
