/**
 * Which memory of the client a device may reach, and how: a map of disjoint regions. A region is
 * `mapped` (its bytes are in this process), `file` (copied from and to its descriptor) or `message` (no
 * descriptor came: DMA_READ and DMA_WRITE).
 */
import { assert } from '#base/assert';
import { IntervalMap } from '#base/interval-map';
import type { DmaMapRequest, DmaUnmapRequest } from './dma-mapping.ts';
import type { FdOperations, MappedMemory } from './fd-operations.ts';
import { Errno, Refusal } from './refusal.ts';

const PAGE_BYTES = 4096;

/**
 * What to do with a descriptor whose file may become shorter, so that touching mapped bytes of it could
 * end this process: `copy` through the descriptor (files in kernel memory only; others are refused),
 * `refuse`, or `map` it all the same, where the client is trusted.
 */
export type UnsealedMemory = 'copy' | 'refuse' | 'map';

export interface DmaMapOptions {
  readonly unsealedMemory: UnsealedMemory;
  readonly maxRegions: number;
  /** Beyond this many, regions are copied. */
  readonly maxMapped: number;
}

/** One descriptor for all regions of a file: under a vIOMMU there are thousands of them. */
interface SharedFile {
  readonly fd: number;
  readonly identity: string;
  regions: number;
}

export class DmaRegion {
  readonly address: number;
  readonly sizeBytes: number;
  readonly readable: boolean;
  readonly writable: boolean;
  /** Of a `mapped` region. */
  readonly memory: MappedMemory | undefined;
  /** Of a `file` region: its file, and where it begins in it. */
  readonly file: SharedFile | undefined;
  readonly fileOffset: number;

  constructor(
    request: DmaMapRequest,
    memory: MappedMemory | undefined,
    file: SharedFile | undefined,
  ) {
    this.address = request.address;
    this.sizeBytes = request.sizeBytes;
    this.readable = request.readable;
    this.writable = request.writable;
    this.memory = memory;
    this.file = file;
    this.fileOffset = request.fileOffset;
  }

  get access(): 'mapped' | 'file' | 'message' {
    if (this.memory !== undefined) return 'mapped';
    return this.file === undefined ? 'message' : 'file';
  }

  /**
   * The bytes of a `mapped` region, as arrays of at most 1 GiB at their addresses. Once the region is
   * taken back they show zeros and reach nobody.
   */
  *windows(): Generator<{ readonly address: number; readonly bytes: Uint8Array }> {
    if (this.memory === undefined) return;
    let address = this.address;
    for (const bytes of this.memory.windows) {
      yield { address, bytes };
      address += bytes.length;
    }
  }
}

export class DmaMap {
  readonly #fds: FdOperations;
  readonly #options: DmaMapOptions;
  readonly #intervals = new IntervalMap();
  /** The interval's value is the place in here. */
  readonly #regions: (DmaRegion | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #files = new Map<string, SharedFile>();
  #mapped = 0;

  constructor(fds: FdOperations, options: DmaMapOptions) {
    this.#fds = fds;
    this.#options = options;
  }

  /** By ascending address. */
  *regions(): Generator<DmaRegion> {
    for (let place = 0; place < this.#intervals.size; place++) {
      yield this.#at(this.#intervals.valueAt(place));
    }
  }

  /** The region that holds `address`. */
  find(address: number): DmaRegion | undefined {
    const place = this.#intervals.find(address);
    return place < 0 ? undefined : this.#at(place);
  }

  /** Adds a region. Takes over `fd` (undefined: none came), whatever it returns. */
  add(request: DmaMapRequest, fd: number | undefined): DmaRegion | Refusal {
    const region = this.#newRegion(request, fd);
    if (region instanceof Refusal) return region;
    const place = this.#free.pop() ?? this.#regions.length;
    this.#regions[place] = region;
    const { address, sizeBytes } = request;
    const added = this.#intervals.insert(address, address + sizeBytes - 1, place);
    assert(added, 'checked before');
    return region;
  }

  /**
   * The regions that lie in what `request` names. The specification asks for exactly one region; QEMU
   * takes back the whole of an address space when a guest's IOMMU switches it, with whatever is there.
   * EINVAL if a region would be cut. Nothing changes yet.
   */
  named(request: DmaUnmapRequest): readonly DmaRegion[] | Refusal {
    if (request.all) return [...this.regions()];
    const end = request.address + request.sizeBytes;
    const found: DmaRegion[] = [];
    for (let place = this.#firstFrom(request.address); place < this.#intervals.size; place++) {
      if (this.#intervals.baseAt(place) >= end) break;
      const region = this.#at(this.#intervals.valueAt(place));
      if (region.address < request.address || region.address + region.sizeBytes > end) {
        return new Refusal(Errno.EINVAL, 'DMA_UNMAP of a part of a region');
      }
      found.push(region);
    }
    return found;
  }

  /** Takes `region` back: nothing reaches its memory any more, not even through arrays of it. */
  remove(region: DmaRegion): void {
    const place = this.#intervals.remove(region.address);
    assert(place >= 0 && this.#regions[place] === region, 'a region of this map');
    this.#regions[place] = undefined;
    this.#free.push(place);
    const { memory, file } = region;
    if (memory !== undefined) {
      this.#mapped--;
      memory.release();
    }
    if (file === undefined || --file.regions > 0) return;
    this.#files.delete(file.identity);
    this.#fds.close(file.fd);
  }

  /** The place of the first region that ends behind `address`. */
  #firstFrom(address: number): number {
    let low = 0;
    let high = this.#intervals.size;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#intervals.limitAt(middle) < address) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #at(place: number): DmaRegion {
    const region = this.#regions[place];
    assert(region !== undefined, 'an interval has its region');
    return region;
  }

  #newRegion(request: DmaMapRequest, fd: number | undefined): DmaRegion | Refusal {
    const refused = this.#refuse(request);
    if (refused !== undefined || fd === undefined) {
      if (fd !== undefined) this.#fds.close(fd);
      return refused ?? new DmaRegion(request, undefined, undefined);
    }
    const region = this.#regionOfFile(request, fd);
    // A file that is copied keeps the first descriptor of it.
    if (region instanceof Refusal || region.file?.fd !== fd) this.#fds.close(fd);
    return region;
  }

  #refuse(request: DmaMapRequest): Refusal | undefined {
    const { address, sizeBytes } = request;
    if (this.#intervals.overlaps(address, address + sizeBytes - 1)) {
      return new Refusal(Errno.EEXIST, 'DMA_MAP over a region that is there');
    }
    if (this.#intervals.size >= this.#options.maxRegions) {
      return new Refusal(Errno.ENOSPC, `DMA_MAP beyond ${this.#options.maxRegions} regions`);
    }
    return undefined;
  }

  #regionOfFile(request: DmaMapRequest, fd: number): DmaRegion | Refusal {
    const { address, sizeBytes, fileOffset, writable } = request;
    const info = this.#fds.inspect(fd);
    if (info.kind !== 'memory') {
      return new Refusal(Errno.EINVAL, 'the descriptor of DMA_MAP is not a file');
    }
    if (fileOffset + sizeBytes > info.sizeBytes) {
      const end = fileOffset + sizeBytes;
      return new Refusal(Errno.EINVAL, `DMA_MAP up to ${end} of a file of ${info.sizeBytes} bytes`);
    }
    if (address % PAGE_BYTES !== 0 || sizeBytes % PAGE_BYTES !== 0) {
      return new Refusal(Errno.EINVAL, 'DMA_MAP of a file, but not of whole pages');
    }
    const { unsealedMemory } = this.#options;
    const isSafe = info.keepsSize || unsealedMemory === 'map';
    if (!isSafe && (unsealedMemory === 'refuse' || !info.inMemory)) {
      return new Refusal(Errno.EINVAL, 'the file of DMA_MAP may become shorter');
    }
    if (!isSafe || this.#mapped >= this.#options.maxMapped) {
      return new DmaRegion(request, undefined, this.#share(fd, info.identity));
    }
    const memory = this.#fds.map(fd, fileOffset, sizeBytes, writable);
    if (memory instanceof Refusal) return memory;
    this.#mapped++;
    return new DmaRegion(request, memory, undefined);
  }

  #share(fd: number, identity: string): SharedFile {
    const known = this.#files.get(identity);
    const file = known ?? { fd, identity, regions: 0 };
    if (known === undefined) this.#files.set(identity, file);
    file.regions++;
    return file;
  }
}
