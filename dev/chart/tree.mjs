// Manifests whose parts depend on components. A slot holds what stands in one place: variants, each with the component that puts it there
// (none: always). A variant without a node takes the place's contents away.
import { isDeepStrictEqual as same } from 'node:util';

const isMap = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
const isEmpty = (value) => typeof value === 'object' && value !== null && Object.keys(value).length === 0;

/** Lists that a component replaces as a whole: who may connect. */
const WHOLE = new Set(['from', 'to']);

function node(value) {
  if (Array.isArray(value) && value.length > 0) return { list: value.map((part) => ({ name: part?.name, ...slot(part) })) };
  if (isMap(value) && !isEmpty(value)) return { map: new Map(Object.entries(value).map(([key, part]) => [key, slot(part)])) };
  return { scalar: value };
}

export const slot = (value, component) => ({ variants: value === undefined ? [] : [{ component, node: node(value) }] });

/** Where an index of one list is in the other, or nothing if the lists have nothing in common that can be told. */
function paired(before, after) {
  if ([...before, ...after].every((part) => isMap(part) && part.name)) return (part) => before.findIndex(({ name }) => name === part.name);
  if (before.every((part, at) => same(part, after[at]))) return (part, at) => (at < before.length ? at : -1);
  if (before.length === after.length && before.every(isMap)) return (_, at) => at;
  return undefined;
}

function changeList(list, before, after, change) {
  const place = paired(before, after);
  after.forEach((part, at) => {
    const found = place(part, at);
    // lists in the tree may hold more than `before`: what other components have added
    const known = found < 0 ? undefined : list.findLast(({ name }, index) => (part.name ? name === part.name : index === found));
    if (known) change(known, before[found], part);
    else list.push({ name: part?.name, ...slot(part, change.component) });
  });
}

/** Notes in a tree what a component made of `before`; `context` are the components that were there. */
export function note(root, before, after, component, context) {
  const change = (place, a, b, key) => {
    if (same(a, b)) return;
    const within = place.variants.findLast((variant) => variant.node && (!variant.component || context.includes(variant.component)));
    if (isMap(a) && isMap(b) && within?.node.map) {
      for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
        if (!within.node.map.has(name)) within.node.map.set(name, { variants: [] });
        change(within.node.map.get(name), a[name], b[name], name);
      }
    } else if (Array.isArray(a) && Array.isArray(b) && within?.node.list && !WHOLE.has(key) && paired(a, b)) {
      changeList(within.node.list, a, b, change);
    } else place.variants.push({ component, node: b === undefined ? undefined : node(b) });
  };
  change.component = component;
  change(root, before, after);
}
