// A tree as a template of Helm: YAML, with a condition around what depends on a component and an expression for what is a value.
import { isDeepStrictEqual as same } from 'node:util';

import { stringify } from 'yaml';

import { SWITCHES } from './switches.mjs';

const ORDER = Object.keys(SWITCHES);
const pad = (indent) => ' '.repeat(indent);
const indented = (indent) => (line) => pad(indent) + line.replaceAll('INDENT2', indent + 2).replaceAll('INDENT', indent);
const braced = (condition) => (condition.includes(' ') ? `(${condition})` : condition);
const escaped = (text) => text.replaceAll('{{', '{{ "{{" }}');

/** A condition that holds where one of the components is taken. */
const anyOf = (components) => {
  const conditions = components.map((name) => SWITCHES[name].when);
  return conditions.length === 1 ? conditions[0] : `or ${conditions.map(braced).join(' ')}`;
};

function scalar(value, indent) {
  if (typeof value === 'string' && value.includes('\n')) {
    const lines = escaped(value.replace(/\n$/, '')).split('\n').map((line) => (line ? pad(indent) + line : ''));
    return [value.endsWith('\n') ? '|' : '|-', ...lines];
  }
  return [escaped(stringify(value, { version: '1.1', lineWidth: 0 }).trim())];
}

/** Neighbours under the same single condition, under one. */
function together(parts) {
  const lines = [];
  const opens = (part) => (/^ *\{\{- if /.test(part[0] ?? '') && !part.slice(1, -1).some((line) => /^\{\{- (else|end)/.test(line.slice(part[0].search(/\S/)))) ? part[0] : undefined);
  let before;
  for (const part of parts) {
    if (before && before === opens(part)) lines.splice(-1, 1, ...part.slice(1));
    else lines.push(...part);
    before = opens(part);
  }
  return lines;
}

/** Prints trees; `parameters` says of a place what is printed instead: see parameters.mjs. */
export function printer(parameters) {
  /** Lines of a node that begin beside its key, or under it. */
  function value(part, indent, at) {
    const expression = parameters.at(at, part);
    if (expression?.under) return { under: expression.under.map(indented(indent)) };
    if (expression) return { beside: [expression.beside[0], ...expression.beside.slice(1).map(indented(indent))] };
    if (part.map) {
      const entries = [...part.map].map(([key, place]) => entry(key, place, indent, { ...at, path: `${at.path}${at.path && '.'}${key}` }));
      return { under: [...together(entries), ...parameters.after(at).map(indented(indent))] };
    }
    if (part.list) {
      const items = part.list.map((place, index) => item(place, indent, { ...at, path: `${at.path}[${place.name ?? index}]` }));
      return { under: [...together(items), ...parameters.after(at).map(indented(indent))] };
    }
    return { beside: scalar(part.scalar, indent) };
  }

  /** The variants of a place as lines under conditions; `show` prints one of them. */
  function conditions(place, indent, at, show) {
    const [always] = place.variants.filter(({ component }) => !component);
    const gone = place.variants.filter(({ node }) => !node).map(({ component }) => component);
    const arms = [];
    const rank = ({ component }) => ORDER.indexOf(component);
    for (const variant of place.variants.filter(({ component, node }) => component && node).sort((a, b) => rank(b) - rank(a))) {
      const lines = show(variant.node, { ...at, component: variant.component });
      const known = arms.find((arm) => same(arm.lines, lines));
      if (known) known.components.unshift(variant.component);
      else arms.push({ components: [variant.component], lines });
    }
    let lines = always ? show(always.node, at) : [];
    if (arms.length > 0) {
      const chain = arms.flatMap((arm, index) => [`${pad(indent)}{{- ${index > 0 ? 'else ' : ''}if ${anyOf(arm.components)} }}`, ...arm.lines]);
      lines = [...chain, ...(always ? [`${pad(indent)}{{- else }}`, ...lines] : []), `${pad(indent)}{{- end }}`];
    }
    return gone.length > 0 ? [`${pad(indent)}{{- if not ${braced(anyOf(gone))} }}`, ...lines, `${pad(indent)}{{- end }}`] : lines;
  }

  function entry(key, place, indent, at) {
    const whole = parameters.whole(at, place);
    if (whole) return whole.map((line) => pad(indent) + line.replaceAll('INDENT', indent + 2));
    const head = `${pad(indent)}${scalar(key, 0)[0]}:`;
    return conditions(place, indent, at, (part, where) => {
      const { beside, under } = value(part, indent + 2, where);
      return beside ? [`${head} ${beside[0]}`, ...beside.slice(1)] : [head, ...under];
    });
  }

  function item(place, indent, at) {
    return conditions(place, indent, at, (part, where) => {
      const { beside, under } = value(part, indent + 2, where);
      if (beside) return [`${pad(indent)}- ${beside[0]}`, ...beside.slice(1)];
      const [first, ...rest] = under;
      return first.trim().startsWith('{{') ? [`${pad(indent)}-`, ...under] : [`${pad(indent)}- ${first.slice(indent + 2)}`, ...rest];
    });
  }

  const at = (object, path = '') => ({ object, path, component: undefined });
  return {
    /** A whole object, under the conditions of its components. */
    object: (name, place) => conditions(place, 0, at(name), (part, where) => value(part, 0, where).under),
    /** What stands in one place, by itself. */
    place: (name, path, place) => conditions(place, 0, at(name, path), (part, where) => {
      const { beside, under } = value(part, 0, where);
      return beside ?? under;
    }),
  };
}
