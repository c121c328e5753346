"use strict";
// What is wrong with how a page looks, as a list of sentences.

(() => {
  const shown = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && element.checkVisibility({ visibilityProperty: true });
  };
  const name = (element) => `${element.localName}.${element.getAttribute("class") || ""} ${element.textContent.trim().slice(0, 40)}`;

  const numbers = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
  const over = (top, below) => {
    const alpha = top.length > 3 ? top[3] : 1;
    return [0, 1, 2].map((place) => top[place] * alpha + below[place] * (1 - alpha));
  };
  function ground(element) {
    const layers = [];
    for (let each = element; each; each = each.parentElement) {
      const colour = numbers(getComputedStyle(each).backgroundColor);
      if (colour.length === 3) { layers.push(colour); break; }
      if (colour[3] > 0) layers.push(colour);
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  }
  const light = (colour) => {
    const [red, green, blue] = colour.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  function contrast(element) {
    const below = ground(element);
    const style = getComputedStyle(element);
    const own = over(numbers(element instanceof SVGElement ? style.fill : style.color), below);
    const [high, low] = [light(own), light(below)].sort((one, other) => other - one);
    return (high + 0.05) / (low + 0.05);
  }

  const hasText = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  window.hardToRead = () => [...document.querySelectorAll("body *")]
    .filter((element) => hasText(element) && shown(element) && contrast(element) < 4.5)
    .map((element) => `${contrast(element).toFixed(1)} ${name(element)}`);

  window.hardToHit = () => [...document.querySelectorAll("button, input, select, textarea, summary, nav a, .button")]
    .filter((element) => shown(element) && !element.matches("[type=radio], [type=hidden]"))
    .filter((element) => element.getBoundingClientRect().height < 39.5)
    .map((element) => `${Math.round(element.getBoundingClientRect().height)} ${name(element)}`);

  const scrolls = (element) => ["auto", "scroll", "hidden"].includes(getComputedStyle(element).overflowX);
  window.tooWide = () => {
    const width = document.documentElement.clientWidth;
    const held = (element) => { for (let each = element.parentElement; each; each = each.parentElement) if (scrolls(each)) return true; return false; };
    return [...document.querySelectorAll("body *")]
      .filter((element) => shown(element) && element.getBoundingClientRect().right > width + 1 && !held(element))
      .map((element) => `${Math.round(element.getBoundingClientRect().right)} ${name(element)}`);
  };
})();
