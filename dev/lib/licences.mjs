// A table of the licences of everything in the bills of materials.

/** The licence of a component: an SPDX expression, a name, or undefined. */
export const licenceOf = ({ licenses = [] }) => licenses.map(({ expression, license }) => expression ?? license.id ?? license.name).join(' AND ');

/** A page with the count of each licence and the licence of each component; `bills` are pairs of name and bill. */
export function licenceTable(bills) {
  const rows = new Map();
  for (const [bill, { components }] of bills) {
    for (const component of components) {
      const name = `${component.group ? `${component.group}/` : ''}${component.name} ${component.version}`;
      const row = rows.get(name) ?? { licence: licenceOf(component), bills: [] };
      rows.set(name, { ...row, bills: [...row.bills, bill] });
    }
  }
  const without = [...rows].filter(([, { licence }]) => !licence).map(([name]) => name);
  if (without.length > 0) throw new Error(`no licence is known of ${without.join(', ')}`);
  const counts = new Map();
  for (const { licence } of rows.values()) counts.set(licence, (counts.get(licence) ?? 0) + 1);
  const byCount = [...counts].sort(([one, a], [other, b]) => b - a || one.localeCompare(other, 'en'));
  const byName = [...rows].sort(([one], [other]) => one.localeCompare(other, 'en'));
  return [
    '# Licences of what the images are made of', '',
    '| Licence | Components |', '|---|---|', ...byCount.map(([licence, count]) => `| ${licence} | ${count} |`), '',
    '| Component | Licence | In |', '|---|---|---|', ...byName.map(([name, { licence, bills: in_ }]) => `| ${name} | ${licence} | ${in_.join(', ')} |`), '',
  ].join('\n');
}
