// People for a stack that is looked at: they sign in, use applications, have tokens refreshed and leave, again and again, whatever fails.
import { pause } from '../lib/net.mjs';
import { Client } from '../tests/product/client.mjs';

export const SCRIPT = { 'x-csrf': '1', 'sec-fetch-site': 'same-origin', accept: 'application/json' };
const PAGES = 20;
const TURNED_AWAY_MS = 1000;

/** One of them, until `isOver()`; `address(page)` is where they go next. */
async function person(stack, number, address, isOver) {
  while (!isOver()) {
    const client = new Client();
    const isIn = await client.signIn(stack, { account: stack.accounts[number % stack.accounts.length] }).then(() => true, () => false);
    if (!isIn) await pause(TURNED_AWAY_MS);
    for (let page = 0; isIn && page < PAGES && !isOver(); page += 1) {
      await client.me(stack).catch(() => {});
      await client.fetch(stack.edgeUrl + address(page)).catch(() => {});
      if (page % 5 === number % 5) await client.fetch(`${stack.edgeUrl}/api/auth/access-token`, { headers: SCRIPT }).catch(() => {});
      await pause(200 + 100 * number);
    }
    await client.fetch(`${stack.edgeUrl}/api/auth/logout`, { method: 'POST', headers: SCRIPT }).catch(() => {});
  }
}

/** So many of them; done once it is over and the last has left. */
export const people = (count, stack, address, isOver) => Promise.all(Array.from({ length: count }, (_, number) => person(stack, number, address, isOver)));
