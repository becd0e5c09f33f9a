// Nobody is signed out without a cause.
import { saysOver } from '../answers.mjs';

export default {
  name: 'signed-out',
  what: 'nobody is signed out without a cause, and no acknowledged sign-in is lost',
  find({ sessions }) {
    return [...sessions.values()].flatMap(({ name, who, endings, answers }) => {
      const first = answers.find((event) => (saysOver(event) || (event.set === 'cleared' && event.kind !== 'sign-out')) && !endings.some(({ begin }) => begin <= event.end));
      return first ? [{ at: first.end, text: `session ${name} of ${who} is over by ${first.kind} at ${first.edge}, and nobody ended it`, event: first }] : [];
    });
  },
};
