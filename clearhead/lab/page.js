"use strict";
(function () {
  var root = document.documentElement;
  function show(language) {
    root.dataset.language = language;
    root.lang = language === "zh" ? "zh-CN" : "en";
  }
  var asked = new URLSearchParams(location.search).get("lang") || navigator.language || "en";
  show(asked.slice(0, 2) === "zh" ? "zh" : "en");
  document.getElementById("language").addEventListener("click", function () {
    show(root.dataset.language === "zh" ? "en" : "zh");
  });
  function open(isOpen) {
    document.querySelectorAll("details").forEach(function (one) { one.open = isOpen; });
  }
  window.addEventListener("beforeprint", function () { open(true); });
  window.addEventListener("afterprint", function () { open(false); });
})();
