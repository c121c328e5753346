// Pages that have every word that is typed, the nearest first; the index is a file beside this one.
(() => {
  const field = document.getElementById("search");
  const found = document.getElementById("found");
  const pages = document.getElementById("pages");
  const up = document.body.dataset.up;

  const rank = (page, words) => {
    let sum = 0;
    for (const word of words) {
      if (page.title.toLowerCase().includes(word)) sum += 20;
      else if (page.headings.some(([, title]) => title.toLowerCase().includes(word))) sum += 8;
      else if (page.words.includes(word)) sum += 1;
      else return 0;
    }
    return sum;
  };

  const link = (place, text) => {
    const item = document.createElement("a");
    item.href = `${up}/${place}`;
    item.textContent = text;
    return item;
  };

  const look = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    found.hidden = !words.length;
    pages.hidden = !!words.length;
    const hits = words.length ? window.PAGES.map((page) => [rank(page, words), page]).filter(([sum]) => sum) : [];
    hits.sort((one, other) => other[0] - one[0]);
    found.replaceChildren(...hits.slice(0, 25).flatMap(([, page]) => [
      link(page.place, page.title),
      ...page.headings.filter(([, title]) => words.every((word) => title.toLowerCase().includes(word))).slice(0, 4)
        .map(([name, title]) => link(`${page.place}#${name}`, `· ${title}`)),
    ]));
    if (words.length && !hits.length) found.textContent = "Nothing has all of these words.";
  };

  field.addEventListener("input", look);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") found.querySelector("a")?.click();
    if (event.key === "Escape") { field.value = ""; look(); field.blur(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== field) { event.preventDefault(); field.focus(); }
  });
})();
