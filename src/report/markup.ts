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
      .replaceAll(
        /[^\P{Cc}\t\n\r]|[\u202a-\u202e\u2066-\u2069\ufffe\uffff]|\p{Surrogate}/gu,
        '\ufffd',
      )
  );
}
