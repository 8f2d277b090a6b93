import { inlineCode } from './inline-code.ts';

/**
 * Filters a reference to entries that contain every typed word, hides empty groups and shows the number of
 * matches. Without scripts the whole page is shown.
 */
export const FILTER_SCRIPT = inlineCode(`(() => {
  const field = document.querySelector('[data-filter]');
  const outcomes = document.querySelector('[data-filter-count]');
  const entries = [...document.querySelectorAll('[data-entry]')].map((element) => ({
    element,
    text: element.dataset.entry.toLowerCase(),
    link: document.querySelector('[data-link-to="' + element.id + '"]'),
  }));
  const groups = [...document.querySelectorAll('[data-group]')];
  const none = document.querySelector('[data-filter-none]');
  const apply = () => {
    const words = field.value.toLowerCase().split(/\\s+/).filter((word) => word !== '');
    let shown = 0;
    for (const { element, text, link } of entries) {
      const fits = words.every((word) => text.includes(word));
      element.hidden = !fits;
      if (link !== null) link.hidden = !fits;
      if (fits) shown += 1;
    }
    for (const group of groups) {
      group.hidden = group.querySelector('[data-entry]:not([hidden]), [data-link-to]:not([hidden])') === null;
    }
    none.hidden = shown > 0;
    outcomes.textContent = words.length === 0 ? entries.length + ' in all' : shown + ' of ' + entries.length;
  };
  field.addEventListener('input', apply);
  field.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    field.value = '';
    apply();
  });
  apply();
  const target = location.hash === '' ? null : document.getElementById(decodeURIComponent(location.hash.slice(1)));
  target?.scrollIntoView();
})();`);
