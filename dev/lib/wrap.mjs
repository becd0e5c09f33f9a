/** Wraps the paragraphs and lists of a Markdown text at 118 columns. Tables, headings, pictures and code stay. */
export const wrapped = (text) => text.split(/(\n\n+)/).map((block) => {
  if (/^[|#<!]|```|^\s*$/m.test(block)) return block;
  const [, lines, end] = /^(.*?)(\n*)$/s.exec(block);
  const items = lines.split(/\n(?=- )/).map((item) => item.replace(/\s+/g, ' ').replace(/(.{1,116})(?: |$)/g, `$1\n${item.startsWith('- ') ? '  ' : ''}`).trimEnd());
  return items.join('\n') + end;
}).join('');
