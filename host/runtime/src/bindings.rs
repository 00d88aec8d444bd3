//! What `wit/` says, as Rust. Generated; the host's side of it is in `host/`.

#![allow(missing_docs, unreachable_pub, clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "step-with-everything",
    imports: {
        "interlock:step/transition.[method]entity.reload": async | trappable,
        "interlock:step/transition.[method]entity.save": async | trappable,
        "interlock:step/transition.[method]entity.transition": async | trappable,
        "interlock:step/fencing.still-holds": async | trappable,
        "interlock:step/fencing.still-holds-lease": async | trappable,
        "interlock:step/lease.acquire": async | trappable,
        "interlock:step/lease.[method]lease.extend": async | trappable,
        "interlock:step/lease.[static]lease.release": async | trappable,
        "interlock:step/rows.get": async | trappable,
        "interlock:step/rows.query": async | trappable,
        "interlock:step/rows.put": async | trappable,
        "interlock:step/rows.update": async | trappable,
        "interlock:step/rows.upsert": async | trappable,
        "interlock:step/rows.claim": async | trappable,
        "interlock:step/rows.delete": async | trappable,
        "interlock:step/rows.transact": async | trappable,
        default: trappable,
    },
    exports: { default: async },
    with: {
        "interlock:step/transition.entity": crate::guest::Entity,
        "interlock:step/lease.lease": crate::guest::Lease,
    },
    trappable_error_type: { "interlock:step/types.rejection" => crate::guest::Refusal },
});
