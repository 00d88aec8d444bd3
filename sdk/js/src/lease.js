// Leases: named exclusive rights of the execution, apart from its entity.

import * as fencing from "interlock:step/fencing@0.1.0";
import { Lease as Handle } from "interlock:step/lease@0.1.0";
import { asked } from "./host.js";
import { fromHost, milliseconds } from "./integer.js";

/** A lease that this execution holds. Forgetting this object gives nothing back. */
export class Lease {
  #handle;

  constructor(handle) {
    this.#handle = handle;
  }

  get name() {
    return this.#handle.name();
  }

  get timeLeftMs() {
    return fromHost(this.#handle.leftMs());
  }

  get token() {
    return fromHost(fencing.leaseToken(this.#handle));
  }

  stillHolds() {
    return fencing.stillHoldsLease(this.#handle);
  }

  extend(ttlMs) {
    const ttl = ttlMs === undefined ? undefined : milliseconds("ttlMs", ttlMs);
    asked(() => this.#handle.extend(ttl));
  }

  release() {
    asked(() => Handle.release(this.#handle));
  }
}
