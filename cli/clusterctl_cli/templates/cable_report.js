(function () {
  "use strict";
  var field = document.getElementById("search"), count = document.getElementById("found");
  var parts = Array.prototype.map.call(document.querySelectorAll("[data-search]"), function (part) {
    return { part: part, text: (part.getAttribute("data-search") || part.textContent).toLowerCase() };
  });
  document.getElementById("search-form").hidden = false;
  field.addEventListener("input", function () {
    var wanted = field.value.trim().toLowerCase(), hits = 0;
    parts.forEach(function (one) {
      var hit = wanted !== "" && one.text.indexOf(wanted) >= 0, tile = one.part.classList.contains("tile");
      hits += hit && !tile ? 1 : 0;
      one.part.classList.toggle("hit", hit);
      if (!tile) { one.part.hidden = wanted !== "" && !hit; }
      if (one.part.tagName === "DETAILS" && one.part.classList.contains("ports")) { one.part.open = hit && hits < 12; }
    });
    Array.prototype.forEach.call(document.querySelectorAll(".cell"), function (cell) {
      cell.classList.toggle("hit", wanted !== "" && cell.textContent.toLowerCase().indexOf(wanted) >= 0);
    });
    document.documentElement.classList.toggle("searching", wanted !== "");
    Array.prototype.forEach.call(document.querySelectorAll("details.all"), function (all) { all.open = wanted !== ""; });
    count.textContent = wanted === "" ? "" : hits + " lines and switches";
  });
})();
