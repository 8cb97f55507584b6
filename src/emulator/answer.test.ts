/** `docs/schemas/emulate-1.schema.json` is made of the schema: `npx vitest run FILE --update` writes it anew. */
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { EMULATE_SCHEMA, emulateAnswer } from './answer.ts';

const FILE = fileURLToPath(new URL('../../docs/schemas/emulate-1.schema.json', import.meta.url));

it('the schema of an answer is what docs/schemas has', async () => {
  // As input: fields that a later version adds are no mistake.
  const { $schema, ...schema } = z.toJSONSchema(emulateAnswer, { io: 'input' });
  const document = { $schema, title: EMULATE_SCHEMA, ...schema };
  await expect(`${JSON.stringify(document, null, 2)}\n`).toMatchFileSnapshot(FILE);
});
