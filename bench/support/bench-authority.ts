/** Certificates of an authority of the benchmark's own. */
import { createAuthority, issueCertificate, type KeyAndCertificate } from '#identity/certificates';
import type { IdentityKind } from '#identity/identity';
import type { TlsCredentials } from '#identity/tls-identity';

export class BenchAuthority {
  readonly #own: KeyAndCertificate;

  private constructor(own: KeyAndCertificate) {
    this.#own = own;
  }

  static async create(): Promise<BenchAuthority> {
    return new BenchAuthority(await createAuthority('bench', Date.now()));
  }

  async issue(kind: IdentityKind, id: string): Promise<TlsCredentials> {
    const identity = { kind, id };
    const pair = await issueCertificate(this.#own, identity, { nowMs: Date.now() });
    return { identity, ca: this.#own.certPem, cert: pair.certPem, key: pair.keyPem };
  }
}
