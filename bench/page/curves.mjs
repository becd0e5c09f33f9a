// Curves over a quantity that grows by powers, beside each other in panels with the same axes.
import { count, element, line, picture, text } from './svg.mjs';

const [WIDTH, LEFT, RIGHT, HEIGHT, BOTTOM, GAP] = [760, 48, 12, 250, 46, 52];
/** Above the curves: a title and, where there are several panels, theirs and a legend. */
const [LOW_TOP, TOP] = [62, 94];

/**
 * @param {object} options
 * @param {(range: number[]) => object} options.x scale of the quantity; `options.y` that of what is measured
 * @param {{title: string, curves: {label: string, kind: string, thin?: boolean, points: {x: number, y: number, beyond?: boolean}[]}[]}[]}
 *   options.panels a point `beyond` is drawn hollow
 */
export function curves({ title, unit, across, description, x, y, panels, right = RIGHT, direct = false }) {
  const wide = (WIDTH - LEFT - right - GAP * (panels.length - 1)) / panels.length;
  const top = direct ? LOW_TOP : TOP;
  const down = y([top + HEIGHT, top]);
  const marks = [text(0, 38, unit, { class: 'quiet' })];
  panels.forEach((panel, at) => {
    const from = LEFT + at * (wide + GAP);
    const along = x([from, from + wide]);
    marks.push(...frame({ along, down, from, wide, across, panel, bottom: top + HEIGHT }));
    if (!direct) marks.push(...legend(panel.curves, from));
    for (const curve of panel.curves) marks.push(...drawn(curve, along, down));
    if (direct) marks.push(...ends(panel.curves, along, down));
  });
  return picture({ width: WIDTH, height: top + HEIGHT + BOTTOM, title, description, marks });
}

const frame = ({ along, down, from, wide, across, panel, bottom }) => [
  ...(panel.title ? [text(from, 62, panel.title)] : []),
  ...down.ticks.flatMap((tick) => [
    line(from, down.at(tick), from + wide, down.at(tick), 'grid'),
    text(from - 8, down.at(tick) + 4, count(tick), { class: 'quiet value', 'text-anchor': 'end' }),
  ]),
  line(from, bottom, from + wide, bottom, 'axis'),
  ...along.ticks.flatMap((tick) => [
    line(along.at(tick), bottom, along.at(tick), bottom + 4, 'axis'),
    text(along.at(tick), bottom + 18, count(tick), { class: 'quiet value', 'text-anchor': 'middle' }),
  ]),
  text(from + wide / 2, bottom + 38, across, { class: 'quiet', 'text-anchor': 'middle' }),
];

function drawn({ kind, thin, points }, along, down) {
  const path = points.map(({ x, y }, at) => `${at === 0 ? 'M' : 'L'}${along.at(x).toFixed(1)} ${down.at(y).toFixed(1)}`).join('');
  const dots = points.map(({ x, y, beyond }) => element('circle', { cx: along.at(x), cy: down.at(y), r: beyond ? 3.5 : 2.5, class: beyond ? `stroke-${kind}` : `fill-${kind}`, ...(beyond && { fill: 'none' }) }));
  return [element('path', { d: path, class: `curve stroke-${kind}${thin ? ' thin' : ''}` }), ...dots];
}

/** A sample of each curve above its panel. */
function legend(all, from) {
  let x = from;
  return all.flatMap(({ label, kind, thin }) => {
    const marks = [element('line', { x1: x, y1: 78, x2: x + 20, y2: 78, class: `curve stroke-${kind}${thin ? ' thin' : ''}` }), text(x + 25, 82, label, { class: 'quiet' })];
    x += 25 + label.length * 6.9 + 12;
    return marks;
  });
}

/** Names where curves end, moved apart where they would overlap. */
function ends(all, along, down) {
  const named = all.map(({ label, points }) => ({ label, x: along.at(points.at(-1).x), y: down.at(points.at(-1).y) })).sort((a, b) => b.y - a.y);
  named.forEach((one, at) => { if (at > 0) one.y = Math.min(one.y, named[at - 1].y - 16); });
  return named.map(({ label, x, y }) => text(x + 10, y + 4, label));
}
