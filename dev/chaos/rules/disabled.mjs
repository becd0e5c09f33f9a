// An account that the provider disables keeps no session, even if no request needs a token.
export default {
  name: 'disabled',
  what: 'the sessions of a disabled account end after the faults',
  find({ events }) {
    const left = events.filter(({ type }) => type === 'left');
    if (left.length === 0) return [{ at: 0, text: 'no account was disabled' }];
    return left.filter(({ ok }) => !ok)
      .map((event) => ({ at: event.end, text: `${event.who} is disabled, but still signed in ${Math.round(event.end - event.begin)} ms after the faults`, event }));
  },
};
