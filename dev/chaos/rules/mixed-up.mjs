// No user receives another user's data: person, session handle and tokens belong to one session each.
export default {
  name: 'mixed-up',
  what: 'no user or session receives an answer for another',
  find({ sessions }) {
    const owners = { handle: new Map(), token: new Map() };
    const handles = new Map();
    return [...sessions.values()].flatMap(({ name, who, answers }) => answers.flatMap((event) => {
      const wrong = [];
      if (event.sub !== undefined && event.sub !== who) wrong.push(`${who} receives the identity of ${event.sub}`);
      if (event.set && !['cleared', name].includes(event.set) && event.kind !== 'sign-in') wrong.push(`the cookie of session ${event.set} comes with an answer to session ${name}`);
      for (const kind of ['handle', 'token']) {
        if (event[kind] === undefined) continue;
        const owner = owners[kind].get(event[kind]) ?? name;
        owners[kind].set(event[kind], owner);
        if (owner !== name) wrong.push(`session ${name} receives the ${kind} of session ${owner}`);
      }
      if (event.handle !== undefined && event.handle !== (handles.get(name) ?? event.handle)) wrong.push(`session ${name} has two handles`);
      if (event.handle !== undefined) handles.set(name, event.handle);
      return wrong.map((text) => ({ at: event.end, text, event }));
    }));
  },
};
