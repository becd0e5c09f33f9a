// What plots are drawn with: text, lines and scales as SVG, readable on a light page and on a dark one. The same figures give the
// same bytes.

const FONT_PX = 13;

/** Colours by what a mark stands for; a page shows the picture in its own scheme. */
const STYLE = `
  :root { --ink: #1f2328; --quiet: #59636e; --grid: #d8dee4; --ours: #0a7d55; --other: #b45309; --bound: #8c959f; --peer: #8fa9c9 }
  @media (prefers-color-scheme: dark) {
    :root { --ink: #e6edf3; --quiet: #9da7b1; --grid: #343b44; --ours: #3fb984; --other: #e8a04c; --bound: #7d8590; --peer: #56769c }
  }
  text { font: ${FONT_PX}px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: var(--ink) }
  .title { font-weight: 600; font-size: 15px } .quiet { fill: var(--quiet) } .value { font-variant-numeric: tabular-nums }
  .grid { stroke: var(--grid) } .axis { stroke: var(--quiet) }
  .curve { fill: none; stroke-width: 2; stroke-linejoin: round } .thin { stroke-width: 1.25; stroke-dasharray: 4 3 }
  ${['ours', 'other', 'bound', 'peer'].map((name) => `.fill-${name} { fill: var(--${name}) } .stroke-${name} { stroke: var(--${name}) }`).join(' ')}
`;

const escaped = (text) => String(text).replace(/[&<>"]/g, (character) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[character]);

/** Coordinates to a tenth of a pixel. */
const px = (value) => String(Math.round(value * 10) / 10);

const attributes = (all) => Object.entries(all).map(([name, value]) => ` ${name}="${typeof value === 'number' ? px(value) : escaped(value)}"`).join('');

export const element = (name, given, content) => `<${name}${attributes(given)}${content === undefined ? '/>' : `>${content}</${name}>`}`;

export const text = (x, y, content, given = {}) => element('text', { x, y, ...given }, escaped(content));

export const line = (x1, y1, x2, y2, kind) => element('line', { x1, y1, x2, y2, class: kind });

/** A whole picture; `description` says in words what it shows. */
export const picture = ({ width, height, title, description, marks }) => `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${px(width)} ${px(height)}" width="${px(width)}" height="${px(height)}" role="img" aria-labelledby="title description">
<title id="title">${escaped(title)}</title>
<desc id="description">${escaped(description)}</desc>
<style>${STYLE}</style>
${text(0, 18, title, { class: 'title' })}
${marks.join('\n')}
</svg>
`;

/** From a value to a coordinate; `ticks` are where lines are drawn. */
export function linear([low, high], [from, to], wanted = 5) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((times) => times * power >= rough);
  const ticks = Array.from({ length: Math.floor((high - low) / step + 1e-9) + 1 }, (_, at) => low + at * step);
  return { at: (value) => from + ((value - low) / (high - low)) * (to - from), ticks };
}

/** The same by powers, with ticks at 1, 2 and 5 of each, or at some of these. */
export function logarithmic([low, high], [from, to], steps = [1, 2, 5]) {
  const at = (value) => from + (Math.log(value / low) / Math.log(high / low)) * (to - from);
  const ticks = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) ticks.push(...steps.map((times) => times * power).filter((tick) => tick >= low * 0.999 && tick <= high * 1.001));
  return { at, ticks };
}

/** A number as people write it: 12,000 and 0.25. */
export const count = (value) => (value >= 1000 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3))));
