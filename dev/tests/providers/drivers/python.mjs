// Providers and applications from PyPI, in a separate virtual environment.
import { join } from 'node:path';

import { ROOT } from '../../../stack.mjs';
import { startProgram } from './program.mjs';

export const PYTHON = join(ROOT, '.cache/providers/bin/python');

/** Starts a Python program of this folder that answers at `origin`. */
export const startPython = (name, script, { args = [], env = {}, ...options }) => startProgram(name, PYTHON, [join(ROOT, 'dev/tests/providers/drivers', script), ...args], {
  env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', PYTHONUNBUFFERED: '1', ...env }, ...options,
});
