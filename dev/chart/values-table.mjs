export function writeValuesTable() {}
