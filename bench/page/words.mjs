// Texts about a run.

const clock = (seconds) => (seconds < 90 ? `${seconds} s` : `${Math.round(seconds / 60)} min`);

/** Machine, commit and arguments of a run. */
export function machine({ at, host, commit, dirty, cpu, cores, memoryGiB, kernel, system, load, options }) {
  return `${at.slice(0, 16).replace('T', ' ')} UTC on \`${host}\`: ${cores} × ${cpu}, ${memoryGiB} GiB, ${system}, Linux ${kernel}; load average before it ${load.toFixed(2)}. `
    + `Commit \`${commit.slice(0, 12)}\`${dirty ? ' with changes' : ''}; ${options.rounds} alternating rounds of ${options.seconds} s, ${options.sessions.toLocaleString('en-US')} sessions.`;
}

/** The duration of each line. */
export const budget = ({ tookSecs }) => `${Object.entries(tookSecs).map(([name, seconds]) => `${name.replace('_', ' ')} ${clock(seconds)}`).join(', ')}: ${clock(Object.values(tookSecs).reduce((sum, one) => sum + one, 0))} in all`;
