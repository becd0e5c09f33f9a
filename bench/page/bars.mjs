// Horizontal bars from zero, each with its value: who costs how much.
import { element, line, linear, picture, text } from './svg.mjs';

const [WIDTH, LABELS, VALUES, TOP, ROW, BAR] = [760, 250, 86, 60, 27, 16];

/**
 * @param {object} options
 * @param {{label: string, kind: string, median: number, min?: number, max?: number, digits: number}[]} options.bars from top to bottom;
 *   `kind` is ours, bound or peer
 */
export function bars({ title, unit, description, bars: all }) {
  const height = TOP + all.length * ROW + 30;
  const bottom = TOP + all.length * ROW;
  const scale = linear([0, Math.max(...all.map(({ median }) => median))], [LABELS, WIDTH - VALUES]);
  const marks = [
    text(0, 38, unit, { class: 'quiet' }),
    ...scale.ticks.flatMap((tick) => [
      line(scale.at(tick), TOP - 6, scale.at(tick), bottom, tick === 0 ? 'axis' : 'grid'),
      text(scale.at(tick), bottom + 18, tick.toLocaleString('en-US'), { class: 'quiet', 'text-anchor': 'middle' }),
    ]),
    ...all.flatMap((bar, at) => {
      const middle = TOP + at * ROW + ROW / 2 - 3;
      const end = scale.at(bar.median);
      return [
        text(LABELS - 12, middle + 5, bar.label, { 'text-anchor': 'end' }),
        element('rect', { x: LABELS, y: middle - BAR / 2, width: Math.max(1, end - LABELS), height: BAR, rx: 2, class: `fill-${bar.kind}` }),
        text(end + 8, middle + 5, bar.median.toFixed(bar.median < 100 ? bar.digits : 0), { class: 'value' }),
      ];
    }),
  ];
  return picture({ width: WIDTH, height, title, description, marks });
}
