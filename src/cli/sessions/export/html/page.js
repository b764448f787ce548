"use strict";
// Shows the items that say what was searched for, and the turns that they are in. Without it all of the page is shown.
(() => {
  const field = document.getElementById("search"), count = document.getElementById("found");
  const items = [...document.querySelectorAll("main > .turn > :not(h2)")];
  const texts = items.map((it) => it.textContent.toLowerCase());
  const opened = new Set();
  const search = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let n = 0;
    items.forEach((it, nth) => {
      const hit = words.every((word) => texts[nth].includes(word));
      n += hit;
      it.classList.toggle("miss", !hit);
      const folds = it.matches("details") ? [it, ...it.querySelectorAll("details")] : it.querySelectorAll("details");
      for (const fold of folds) {
        const wanted = words.length && hit && words.some((word) => fold.textContent.toLowerCase().includes(word));
        if (wanted && !fold.open) { fold.open = true; opened.add(fold); }
        if (!wanted && opened.delete(fold)) fold.open = false;
      }
    });
    for (const turn of document.querySelectorAll("main .turn"))
      turn.classList.toggle("miss", words.length && !turn.querySelector(":scope > :not(h2):not(.miss)"));
    count.textContent = words.length ? n + " found" : "";
  };
  let timer;
  field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, 120); });
  addEventListener("keydown", (it) => {
    if (it.key === "/" && it.target !== field) { it.preventDefault(); field.focus(); }
    if (it.key === "Escape" && it.target === field) { field.value = ""; search(); }
  });
  document.getElementById("search-row").hidden = false;
})();
