/* Where texts and traces come from: a report holds them; a server calls CH.show with new traces. */
(function (CH) {
"use strict";

const embedded = (id, otherwise) => JSON.parse(document.getElementById(id).textContent || otherwise);

CH.strings = embedded("strings", "{}");

// The traces that are shown (trace/1); views read them anew whenever they are drawn
CH.traces = embedded("traces", "[]");

CH.show = function (traces) {
  if (CH.state) CH.writeHash(); // read anew
  CH.traces = traces;
  CH.restart();
};
})(window.CH = window.CH || {});
