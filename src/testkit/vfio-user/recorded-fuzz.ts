/** Both ends of vfio-user against the recorded corpus, mutated; all of it from a seed. */
import { Prng } from '#base/prng';
import { openFds } from '../vfio-user-rig.ts';
import { readCorpus, type RecordedSession } from './corpus.ts';
import { ReplyFuzz } from './reply-fuzz.ts';
import { RequestFuzz } from './request-fuzz.ts';

export interface RecordedFuzzResult {
  readonly messages: number;
  /** Requests to the server that it answered without an error, and with one. */
  readonly accepted: number;
  readonly refused: number;
  readonly sessions: number;
  /** Sessions of the client that came to know the device. */
  readonly clientsReady: number;
}

let corpus: readonly RecordedSession[] | undefined;

/** Throws an error that names the seed and the message when something is found. */
export function fuzzRecorded(seed: number, count: number): RecordedFuzzResult {
  corpus ??= readCorpus();
  const prng = new Prng(seed);
  const requests = new RequestFuzz(prng, corpus);
  const replies = new ReplyFuzz(prng, corpus);
  const fds = openFds();
  let messages = 0;
  while (messages < count) {
    const one = prng.below(3) === 0 ? replies : requests;
    try {
      messages += one.run(count - messages);
    } catch (error) {
      const end = one === replies ? 'client' : 'server';
      const hex = Buffer.from(one.last).toString('hex');
      throw new Error(`seed ${seed}, about message ${messages}, ${end}, last given: ${hex}`, {
        cause: error,
      });
    }
    if (openFds() !== fds) {
      throw new Error(
        `seed ${seed}, about message ${messages}: ${openFds() - fds} descriptors are left`,
      );
    }
  }
  return {
    messages,
    accepted: requests.accepted,
    refused: requests.refused,
    sessions: requests.ended + replies.ended,
    clientsReady: replies.ready,
  };
}
