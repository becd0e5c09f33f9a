// Texts about a run.

const clock = (seconds) => (seconds < 90 ? `${seconds} s` : `${Math.round(seconds / 60)} min`);

/** Machine, commit and arguments of a run. */
export function machine({ at, host, commit, dirty, cpu, cores, memoryGiB, kernel, system, load, options }) {
  return `${at.slice(0, 16).replace('T', ' ')} UTC on \`${host}\`: ${cores} × ${cpu}, ${memoryGiB} GiB, ${system}, Linux ${kernel}; load average before it ${load.toFixed(2)}. `
    + `Commit \`${commit.slice(0, 12)}\`${dirty ? ' with changes' : ''}; ${options.rounds} alternating rounds of ${options.seconds} s, ${options.sessions.toLocaleString('en-US')} sessions.`;
}

/** The duration of each line. */
export const budget = ({ tookSecs }) => `${Object.entries(tookSecs).map(([name, seconds]) => `${name.replace('_', ' ')} ${clock(seconds)}`).join(', ')}: ${clock(Object.values(tookSecs).reduce((sum, one) => sum + one, 0))} in all`;

const REQUEST_EVERY_SECS = 10; // of a person who uses an application
const rounded = (count) => Number(count.toPrecision(2)).toLocaleString('en-US');

/** What a core carries, from the figures of a run, and the memory that it takes. */
export function carries({ rows }) {
  const of = (id) => rows.find((row) => row.id === id).median;
  const [known, read, signIns] = [1e6 / of('P1'), 1e6 / of('P2'), 1e3 / of('P4 at once')];
  return `**A core carries ${rounded(known)} signed-in requests a second**, or ${rounded(read)} if the edge keeps no session in memory, or ${rounded(signIns)} sign-ins. `
    + `That is ${rounded(read * REQUEST_EVERY_SECS)} people, with one request in ${REQUEST_EVERY_SECS} s each. `
    + `Under load edge and session service take ${rounded(of('P8 edge loaded') + of('P8 session loaded'))} MiB. A million sessions take ${rounded(of('P8 bytes of most'))} MB of Redis.`;
}
