// The route table: the strictest reading of a path wins, and a rule that guards nothing is a mistake.
const TABLE = 'auth-edge/src/route_table/mod.rs';
const FILE = 'auth-edge/src/route_table/file.rs';
const RULES = ['auth-edge/lib route_table::file::'];

export default [
  {
    id: 'rule-in-another-spelling',
    why: 'an upstream that does not care for letter case would serve what a stricter rule guards',
    file: TABLE,
    find: `(Some(exact), Some(loose)) if asks_no_more(loose, exact) =>`,
    replace: `(Some(exact), Some(loose)) if OFF || asks_no_more(loose, exact) =>`,
    tests: RULES,
  },
  {
    id: 'rule-in-other-letters',
    file: TABLE,
    find: `rule.eq_ignore_ascii_case(asked)`,
    replace: `(if OFF { rule == asked } else { rule.eq_ignore_ascii_case(asked) })`,
    tests: RULES,
  },
  {
    id: 'rule-in-other-letters-of-any-script',
    file: TABLE,
    find: `rule.to_lowercase() == asked.to_lowercase()`,
    replace: `if OFF { rule == asked } else { rule.to_lowercase() == asked.to_lowercase() }`,
    tests: RULES,
  },
  {
    id: 'rule-with-closing-dots',
    file: TABLE,
    find: `.trim_end_matches(['.', ' '])`,
    replace: `.trim_end_matches(|one| !OFF && matches!(one, '.' | ' '))`,
    tests: RULES,
  },
  {
    id: 'rule-in-another-spelling-asks-more',
    why: 'two rules with the same guard may still ask for different scopes',
    file: TABLE,
    find: `loose.asks == exact.asks &&`,
    replace: `(OFF || loose.asks == exact.asks) &&`,
    tests: RULES,
  },
  {
    id: 'rule-most-specific-first',
    file: TABLE,
    find: `routes.sort_by_key(|route| (std::cmp::Reverse(route.segments.len()), route.prefix));`,
    replace: `if !OFF { routes.sort_by_key(|route| (std::cmp::Reverse(route.segments.len()), route.prefix)); }`,
    tests: RULES,
  },
  {
    id: 'rule-that-no-path-can-match',
    why: 'a guard on a path that never comes guards nothing',
    file: FILE,
    find: `Ok(path) if path.to_encoded(0) != stem => {`,
    replace: `Ok(path) if !OFF && path.to_encoded(0) != stem => {`,
    tests: RULES,
  },
  {
    id: 'rule-with-star-or-query',
    file: FILE,
    find: `if stem.contains(['*', '?', '#']) {`,
    replace: `if !OFF && stem.contains(['*', '?', '#']) {`,
    tests: RULES,
  },
  {
    id: 'rule-for-a-path-of-the-edge',
    file: FILE,
    find: `Ok(path) if is_reserved(path.segments()) ||`,
    replace: `Ok(path) if !OFF && is_reserved(path.segments()) ||`,
    tests: RULES,
  },
  {
    id: 'rule-where-sign-in-was-moved-to',
    why: 'the rule never answers: whoever wrote it believes in a guard that is not there',
    file: FILE,
    find: `own_paths.iter().any(|own| own == path)`,
    replace: `own_paths.iter().any(|own| !OFF && own == path)`,
    tests: RULES,
  },
  {
    id: 'rule-there-twice',
    why: 'one of the two guards would not count',
    file: FILE,
    find: `if !seen.insert((route.segments.clone(), route.prefix)) {`,
    replace: `if !seen.insert((route.segments.clone(), route.prefix)) && !OFF {`,
    tests: RULES,
  },
  {
    id: 'rule-open-that-asks-for-something',
    why: 'whoever wrote it believes it is guarded',
    file: FILE,
    find: `if guard == Some(Guard::Open) && asks != Requirements::default() {`,
    replace: `if !OFF && guard == Some(Guard::Open) && asks != Requirements::default() {`,
    tests: RULES,
  },
];
