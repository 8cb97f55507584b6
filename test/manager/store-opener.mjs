// Opens the store of a folder and says how that went, in one line: `opened`, or code and message. With
// `positions`, another line: the newest position as counted, and as found in the log.
//   node store-opener.mjs FOLDER [positions]

import { DxpuError } from '#base/errors';
import { SqliteStore } from '#manager/store/sqlite-store';

const [folder = '', what] = process.argv.slice(2);
try {
  const store = await SqliteStore.open(folder, { version: '0.1.0' });
  console.log('opened');
  if (what === 'positions') {
    console.log(store.load().counters.position, store.log(0, 1e6).length);
  }
  store.close();
} catch (error) {
  const { code, message } = DxpuError.from(error);
  console.log(code, message);
}
