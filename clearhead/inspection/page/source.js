/* Where texts and traces come from. In a report they are in the file itself; a server calls CH.show with new traces. */
(function (CH) {
  "use strict";

  const embedded = (id, otherwise) => JSON.parse(document.getElementById(id).textContent || otherwise);

  /** The texts of every language, by language and key. */
  CH.strings = embedded("strings", "{}");

  /** The traces that are shown (trace/1); views read them anew whenever they are drawn. */
  CH.traces = embedded("traces", "[]");

  /** Show other traces from now on. */
  CH.show = function (traces) {
    CH.traces = traces;
    CH.restart();
  };
})(window.CH = window.CH || {});
