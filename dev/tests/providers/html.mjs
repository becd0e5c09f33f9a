// Parses the forms of a provider's pages, and builds the requests that send them.

const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' };

function decode(text) {
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex, decimal, name) => {
    if (hex || decimal) return String.fromCodePoint(Number.parseInt(hex ?? decimal, hex ? 16 : 10));
    return ENTITIES[name] ?? whole;
  });
}

function attributes(tag) {
  const found = {};
  for (const [, name, , double, single, bare] of tag.matchAll(/([\w:-]+)(?:\s*=\s*("([^"]*)"|'([^']*)'|([^\s>]+)))?/g)) {
    found[name.toLowerCase()] = decode(double ?? single ?? bare ?? '');
  }
  return found;
}

/** The forms of a page: `{text, action, method, fields}`, without buttons. Several checked boxes give a list. */
export function forms({ text, url }) {
  return [...text.matchAll(/<form\b([^>]*)>([\s\S]*?)<\/form>/gi)].map(([whole, head, body]) => {
    const { action, method = 'get' } = attributes(head);
    const fields = {};
    for (const [, tag] of body.matchAll(/<input\b([^>]*)>/gi)) {
      const { name, value = '', type = 'text', checked } = attributes(tag);
      const left = ['submit', 'button', 'image', 'reset', 'file'].includes(type) || (['checkbox', 'radio'].includes(type) && checked === undefined);
      const given = value || (type === 'checkbox' ? 'on' : '');
      if (name && !left) fields[name] = type === 'checkbox' && name in fields ? [fields[name], given].flat() : given;
    }
    return { text: whole, action: new URL(action || url, url).href, method: method.toUpperCase(), fields };
  });
}

/** The request for the form whose source contains `marks`, plus these fields: `{url, method, headers, body}`. */
export function submit(page, marks, fields = {}) {
  const form = forms(page).find(({ text }) => text.includes(marks));
  if (!form) throw new Error(`no form with ${marks} at ${page.url} (${page.status}):\n${page.text.slice(0, 4000)}`);
  const body = new URLSearchParams(Object.entries({ ...form.fields, ...fields }).flatMap(([name, value]) => [value].flat().map((one) => [name, one])));
  const origin = new URL(page.url).origin;
  if (form.method === 'GET') return { url: `${form.action.split('?')[0]}?${body}` };
  return { url: form.action, method: form.method, headers: { origin, referer: page.url }, body };
}
