// How a row of the tables is written: what of a source is switched, and which tests have to notice.
//
// A mutation puts a text with `OFF` in the place of one that occurs once in the code of a file, before its tests. `OFF` becomes an
// expression that is true while this row's defence is off.

/** Any other text. */
export const text = (find, replace) => [{ find, replace }];

/** A statement that is left out. */
export const skip = (statement) => text(statement, `if !OFF { ${statement} }`);

/** A condition that holds whatever comes. */
export const always = (condition) => text(condition, `(OFF || (${condition}))`);

/** A condition that never holds. */
export const never = (condition) => text(condition, `(!OFF && (${condition}))`);

/** An expression with another value. */
export const instead = (expression, other) => text(expression, `(if OFF { ${other} } else { ${expression} })`);

/** A mutation that other tests notice than those of its file: `package filter`, a part of their names. */
export const by = (tests, mutation) => ({ tests: [tests].flat(), mutation });

/** The rows of one source file: its tests, and mutations by what they switch off. */
export const within = (file, tests, rows) => Object.entries(rows).map(([id, row]) => {
  const { mutation = row, tests: own = [tests] } = row;
  return { id, file, tests: own, places: mutation.map((place) => ({ id, file, ...place })) };
});
