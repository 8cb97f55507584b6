/**
 * The fields of one line of comma-separated values. A field may stand in quotes, with `""` for a quote
 * inside. Undefined where a quote is not closed, or something follows a closing one.
 */
export function csvFields(line: string): string[] | undefined {
  const fields: string[] = [];
  let at = 0;
  for (;;) {
    if (line[at] === '"') {
      let field = '';
      let from = at + 1;
      for (;;) {
        const quote = line.indexOf('"', from);
        if (quote < 0) return undefined;
        field += line.slice(from, quote);
        at = quote + 1;
        if (line[at] !== '"') break;
        field += '"';
        from = at + 1;
      }
      fields.push(field);
      if (at < line.length && line[at] !== ',') return undefined;
    } else {
      const comma = line.indexOf(',', at);
      const end = comma < 0 ? line.length : comma;
      fields.push(line.slice(at, end));
      at = end;
    }
    if (at >= line.length) return fields;
    at += 1;
  }
}
