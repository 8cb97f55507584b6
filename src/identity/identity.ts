/**
 * Who a process or a person of the pool is. An identity stands in a certificate as one URI name,
 * `spiffe://pool/KIND/ID`, and nothing else in the pool vouches for it.
 */

/**
 * - `host`, `box`: the two ends of the data plane.
 * - `manager`: the one that owns the pool; hosts and boxes believe nobody else.
 * - `user`: a person or a program that asks the manager for something.
 */
export const IDENTITY_KINDS = ['host', 'box', 'manager', 'user'] as const;
export type IdentityKind = (typeof IDENTITY_KINDS)[number];

export interface Identity<K extends IdentityKind = IdentityKind> {
  readonly kind: K;
  readonly id: string;
}

const TRUST_DOMAIN = 'pool';
const ID = '[A-Za-z0-9][A-Za-z0-9._-]{0,62}';
const WHOLE_ID = new RegExp(`^${ID}$`);
const IDENTITY_URI = new RegExp(`^spiffe://${TRUST_DOMAIN}/(${IDENTITY_KINDS.join('|')})/(${ID})$`);

/** What the URI of an identity looks like, for messages. */
export const IDENTITY_FORM = `spiffe://${TRUST_DOMAIN}/KIND/ID with KIND one of ${IDENTITY_KINDS.join(', ')}`;

/** Whether `id` may name a host, a box, …: 1 to 63 letters, digits, dots, dashes, underscores. */
export function isIdentityName(id: string): boolean {
  return WHOLE_ID.test(id);
}

export function identityUri(identity: Identity): string {
  return `spiffe://${TRUST_DOMAIN}/${identity.kind}/${identity.id}`;
}

/** `undefined` when `uri` is not of the form `spiffe://pool/KIND/ID`. */
export function parseIdentityUri(uri: string): Identity | undefined {
  const match = IDENTITY_URI.exec(uri);
  if (match === null) return undefined;
  return { kind: match[1] as IdentityKind, id: match[2] as string };
}

export function sameIdentity(a: Identity, b: Identity): boolean {
  return a.kind === b.kind && a.id === b.id;
}

/** For messages and as a map key: `host/ID`. */
export function identityName(identity: Identity): string {
  return `${identity.kind}/${identity.id}`;
}
