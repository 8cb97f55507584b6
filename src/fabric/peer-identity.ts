import type { PeerIdentity } from './transport.ts';

export type { PeerIdentity } from './transport.ts';

export function sameIdentity(a: PeerIdentity, b: PeerIdentity): boolean {
  return a.kind === b.kind && a.id === b.id;
}

/** For messages and as a map key: `host/ID` or `box/ID`. */
export function identityName(identity: PeerIdentity): string {
  return `${identity.kind}/${identity.id}`;
}
