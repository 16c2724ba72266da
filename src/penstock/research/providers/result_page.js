// What a result page holds once it has come to rest. It runs in a world of its own, beside the page.
//
//   engine   {result, title, link, snippet, next, captcha, no_results}: places are selectors, or
//            {selector, attribute}; markers are lists of selectors, or `text=` and some words
//   unlike   the mark of the page before, where this one takes its place without being loaded
//   wait     milliseconds that results may take to appear
//   quiet    milliseconds without a change after which a page is at rest
//
// Gives {rows, next, captcha, nothing, mark}:
//   rows     [{title, link, snippet}], each a text or null
//   next     null, {href} for a link, {} for what has to be clicked
//   captcha  the marker that is there, or null
//   nothing  whether it says that nothing was found
//   mark     what tells this page from another
(engine, unlike, wait, quiet) => {
  const MAX_ROWS = 200;
  const MAX_CHARACTERS = 4000;

  const cut = (text) => (text === null || text === undefined ? null : text.slice(0, MAX_CHARACTERS));

  const value = (row, place) => {
    if (!place) return null;
    const found = place.selector ? row.querySelector(place.selector) : row;
    if (!found) return null;
    if (!place.attribute) return cut(found.textContent);
    const given = found.getAttribute(place.attribute);
    if (given === null || place.attribute !== "href") return cut(given);
    return URL.canParse(given, document.baseURI) ? cut(new URL(given, document.baseURI).href) : null;
  };

  const isThere = (marker) => {
    if (!marker.startsWith("text=")) return document.querySelector(marker) !== null;
    const words = marker.slice(5).toLowerCase();
    return (document.body?.textContent ?? "").toLowerCase().includes(words);
  };

  const nextPlace = () => {
    const found = engine.next && document.querySelector(engine.next);
    if (!found || found.disabled || found.getAttribute("aria-disabled") === "true") return null;
    const href = found.tagName === "A" && found.getAttribute("href");
    const plain = href && !href.startsWith("#") && URL.canParse(href, document.baseURI);
    const target = plain ? new URL(href, document.baseURI) : null;
    return target && /^https?:$/.test(target.protocol) ? { href: target.href } : {};
  };

  const read = () => {
    const found = [...document.querySelectorAll(engine.result)].slice(0, MAX_ROWS);
    const rows = found.map((row) => ({
      title: value(row, engine.title),
      link: value(row, engine.link),
      snippet: value(row, engine.snippet),
    }));
    return {
      rows,
      next: nextPlace(),
      captcha: engine.captcha.find(isThere) ?? null,
      nothing: engine.no_results.some(isThere),
      mark: rows.map((row) => row.link).join(" ").slice(0, MAX_CHARACTERS),
    };
  };

  return new Promise((resolve, reject) => {
    const end = performance.now() + wait;
    let changed = performance.now();
    let timer;
    const lookAt = (time) => {
      clearTimeout(timer);
      timer = setTimeout(look, Math.min(time, end) - performance.now());
    };
    const look = () => {
      try {
        const page = read();
        const there = page.rows.length > 0 && page.mark !== unlike;
        const told = page.captcha !== null || (page.nothing && page.rows.length === 0);
        const now = performance.now();
        if (told || now >= end || (there && now >= changed + quiet)) {
          observer.disconnect();
          resolve(page);
        } else {
          lookAt(there ? changed + quiet : end);
        }
      } catch (error) {
        observer.disconnect();
        reject(error);
      }
    };
    const observer = new MutationObserver(() => {
      changed = performance.now();
      lookAt(changed + quiet);
    });
    observer.observe(document, { childList: true, subtree: true, characterData: true });
    look();
  });
}
