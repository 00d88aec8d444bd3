//! From a core module with an embedded component type to a component.

use crate::BuildError;
use std::collections::BTreeMap;
use wit_component::{ComponentEncoder, DecodedWasm};
use wit_parser::WorldItem;

/// The fourth version field of a binary tells a component (layer 1) from a core module (layer 0).
const LAYER_COMPONENT: u8 = 1;

/// Lifts a core module; a component is handed back as it is.
///
/// # Errors
/// [`BuildError::Lift`] for what is neither, for a module without an embedded component type, and
/// for one that does not keep to it.
pub fn lift(module: &[u8]) -> Result<Vec<u8>, BuildError> {
    let refuse = |problem: String| BuildError::Lift { problem };
    match module {
        [0, b'a', b's', b'm', _, _, LAYER_COMPONENT, 0, ..] => return Ok(module.to_vec()),
        [0, b'a', b's', b'm', ..] => {}
        _ => return Err(refuse("these bytes are no WebAssembly".to_owned())),
    }
    let lifted = ComponentEncoder::default()
        .module(module)
        .and_then(|encoder| encoder.validate(true).encode())
        .map_err(|e| refuse(format!("{e:#}")))?;
    Ok(lifted)
}

/// What a component imports: interfaces by name, each with the functions it takes from there.
///
/// # Errors
/// [`BuildError::Lift`] for what is no component.
pub fn imports(component: &[u8]) -> Result<BTreeMap<String, Vec<String>>, BuildError> {
    let refuse = |problem: String| BuildError::Lift { problem };
    let (resolve, world) = match wit_component::decode(component).map_err(|e| refuse(format!("{e:#}")))? {
        DecodedWasm::Component(resolve, world) => (resolve, world),
        DecodedWasm::WitPackage(..) => return Err(refuse("this is a package of types, not a component".to_owned())),
    };
    let world = resolve.worlds.get(world).ok_or_else(|| refuse("its type is incomplete".to_owned()))?;
    let mut found = BTreeMap::new();
    for (key, item) in &world.imports {
        let functions = match item {
            WorldItem::Interface { id, .. } => {
                let interface = resolve.interfaces.get(*id);
                interface.into_iter().flat_map(|interface| interface.functions.keys().cloned()).collect()
            }
            WorldItem::Function(function) => vec![function.name.clone()],
            WorldItem::Type { .. } => continue,
        };
        found.insert(resolve.name_world_key(key), functions);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::lift;

    #[test]
    fn bytes_that_are_no_wasm_are_refused() {
        let refused = lift(b"#!/bin/sh\n").expect_err("a script");
        assert!(refused.to_string().starts_with("not a step: these bytes are no WebAssembly;"));
    }

    #[test]
    fn a_component_is_left_as_it_is() {
        let empty_component = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];
        assert_eq!(lift(&empty_component).ok().as_deref(), Some(empty_component.as_slice()));
    }

    #[test]
    fn a_truncated_module_is_refused() {
        let refused = lift(b"\0asm\x01\0\0\0\x01").expect_err("a section without a size");
        assert!(refused.to_string().contains("unexpected end"), "{refused}");
    }
}
