/** Certificates of a pool of the test's own, and of another. */
import type { Identity } from '#identity/identity';
import { createAuthority, issueCertificate, type KeyAndCertificate } from '#identity/certificates';
import type { TlsCredentials } from '#identity/tls-identity';

export class PoolCredentials {
  readonly #own: KeyAndCertificate;
  readonly #other: KeyAndCertificate;

  private constructor(own: KeyAndCertificate, other: KeyAndCertificate) {
    this.#own = own;
    this.#other = other;
  }

  static async create(): Promise<PoolCredentials> {
    return new PoolCredentials(
      await createAuthority('test pool', Date.now()),
      await createAuthority('another pool', Date.now()),
    );
  }

  async of(kind: Identity['kind'], id: string): Promise<TlsCredentials> {
    return this.#issue({ kind, id }, this.#own, 1);
  }

  /** Its time is over. */
  async expired(kind: Identity['kind'], id: string): Promise<TlsCredentials> {
    return this.#issue({ kind, id }, this.#own, -1);
  }

  /** Issued by another authority, by one who trusts ours. */
  async strange(kind: Identity['kind'], id: string): Promise<TlsCredentials> {
    return this.#issue({ kind, id }, this.#other, 1);
  }

  /** Of another pool altogether. */
  async foreign(kind: Identity['kind'], id: string): Promise<TlsCredentials> {
    return { ...(await this.strange(kind, id)), ca: this.#other.certPem };
  }

  async #issue(
    identity: Identity,
    authority: KeyAndCertificate,
    days: number,
  ): Promise<TlsCredentials> {
    const pair = await issueCertificate(authority, identity, { nowMs: Date.now(), days });
    return { identity, ca: this.#own.certPem, cert: pair.certPem, key: pair.keyPem };
  }
}
