// Path confusion: what could be read in two ways is refused, and everybody reads what is left alike.
const FILE = 'auth-edge/src/gateway/path.rs';
const TESTS = ['auth-edge/lib gateway::path::'];

export default [
  {
    id: 'path-encoded-twice',
    file: FILE,
    find: `'%' if is_escape(&text.as_bytes()[at..]) =>`,
    replace: `'%' if !OFF && is_escape(&text.as_bytes()[at..]) =>`,
    tests: TESTS,
  },
];
