/** `docs/schemas/simulate-1.schema.json` is made of the schema: `npx vitest run FILE --update` writes it anew. */
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { RESULT_SCHEMA, simulateResult } from './result.ts';

const FILE = fileURLToPath(new URL('../../docs/schemas/simulate-1.schema.json', import.meta.url));

it('the schema of an answer is what docs/schemas has', async () => {
  const { $schema, ...schema } = z.toJSONSchema(simulateResult, { io: 'input' });
  const document = { $schema, title: RESULT_SCHEMA, ...schema };
  await expect(`${JSON.stringify(document, null, 2)}\n`).toMatchFileSnapshot(FILE);
});
