/**
 * What a client has lent, told from its accepted messages alone: an oracle for what a server lets its device
 * reach. All descriptors are of one file of zeros, `fd`; what was reached of it shows in its size on disk.
 */
import { closeSync, fstatSync, readSync } from 'node:fs';
import { Command, isCommand, type Message } from '#vfio-user/message';
import { createMemoryFile } from '#vfio-user/system-fds';
import { duplicateFd } from '../vfio-user-rig.ts';

interface Lent {
  readonly address: number;
  readonly end: number;
  readonly readable: boolean;
  readonly writable: boolean;
  /** Without a file, the device's accesses go as messages. */
  readonly fileOffset: number | undefined;
}

/** Of a request's payload, behind argsz (specification, "DMA_MAP", "DMA_UNMAP"). */
const FLAGS = 20;
const MAP_OFFSET = 24;
const MAP_ADDRESS = 32;
const MAP_SIZE = 40;
const UNMAP_ADDRESS = 24;
const UNMAP_SIZE = 32;
const UNMAP_ALL = 2;
const PAGE_BYTES = 4096;
/** Of st_blocks. */
const BLOCK_BYTES = 512;

export class LentMemory {
  readonly #fd: number;
  #lent: Lent[] = [];
  readonly #pages = new Set<number>();

  constructor(fileBytes: number) {
    this.#fd = createMemoryFile('lent', fileBytes, true);
  }

  /** Another description of the file, to be given away. */
  descriptor(): number {
    return duplicateFd(this.#fd);
  }

  /** A message that the server has not refused. */
  accepted(message: Message, fds: number): void {
    const { command, view } = message;
    if (!isCommand(message)) return;
    const at = (offset: number): number => Number(view.getBigUint64(offset, true));
    if (command === Command.DMA_MAP) {
      const flags = view.getUint32(FLAGS, true);
      const address = at(MAP_ADDRESS);
      this.#lent.push({
        address,
        end: address + at(MAP_SIZE),
        readable: (flags & 1) !== 0,
        writable: (flags & 2) !== 0,
        fileOffset: fds === 0 ? undefined : at(MAP_OFFSET),
      });
    } else if (command === Command.DMA_UNMAP) {
      const isAll = (view.getUint32(FLAGS, true) & UNMAP_ALL) !== 0;
      const address = at(UNMAP_ADDRESS);
      const end = address + at(UNMAP_SIZE);
      this.#lent = this.#lent.filter((one) => !isAll && (one.end <= address || one.address >= end));
    }
  }

  /** An address at which something begins or ends, if anything is lent. */
  edge(pick: <T>(of: readonly T[]) => T): number {
    if (this.#lent.length === 0) return 0;
    const one = pick(this.#lent);
    return pick([one.address, one.end]);
  }

  /** Undefined: some of it is not lent, or not so. Otherwise whether all of it is of the file. */
  allows(isWrite: boolean, address: number, count: number): 'file' | 'message' | undefined {
    let how: 'file' | 'message' = 'file';
    for (let at = address; at < address + count; ) {
      const lent = this.#at(at);
      if (lent === undefined || !(isWrite ? lent.writable : lent.readable)) return undefined;
      if (lent.fileOffset === undefined) how = 'message';
      at = lent.end;
    }
    return how;
  }

  /** The device was let at it: its pages may be there from now on. */
  reached(address: number, count: number): void {
    for (let at = address; at < address + count; ) {
      const lent = this.#at(at);
      if (lent === undefined) return;
      const end = Math.min(address + count, lent.end);
      if (lent.fileOffset !== undefined) {
        const first = lent.fileOffset + at - lent.address;
        const last = lent.fileOffset + end - 1 - lent.address;
        for (let page = Math.floor(first / PAGE_BYTES); page <= last / PAGE_BYTES; page++) {
          this.#pages.add(page);
        }
      }
      at = end;
    }
  }

  /** A byte of the file where `address` is lent from. */
  byteAt(address: number): number {
    const lent = this.#at(address);
    if (lent?.fileOffset === undefined) return -1;
    const byte = new Uint8Array(1);
    readSync(this.#fd, byte, 0, 1, lent.fileOffset + address - lent.address);
    return byte[0] ?? -1;
  }

  /** Nothing is lent from here on; fails if more of the file was touched than the device was let at. */
  end(): void {
    const pages = (fstatSync(this.#fd).blocks * BLOCK_BYTES) / PAGE_BYTES;
    closeSync(this.#fd);
    if (pages > this.#pages.size) {
      throw new Error(`${pages} pages were touched, ${this.#pages.size} of them as they may be`);
    }
  }

  #at(address: number): Lent | undefined {
    return this.#lent.find((one) => one.address <= address && address < one.end);
  }
}
