/** Text made safe for HTML and SVG, element content and quoted attributes alike. */
const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function escapeMarkup(text: string): string {
  return (
    text
      .replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
      // Characters that XML cannot hold, and those that turn the direction of text.
      // oxlint-disable-next-line no-control-regex
      .replaceAll(
        /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u202a-\u202e\u2066-\u2069\ufffe\uffff]|\p{Surrogate}/gu,
        '\ufffd',
      )
  );
}
