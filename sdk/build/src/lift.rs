//! From a core module with an embedded component type to a component.

use crate::BuildError;
use wit_component::ComponentEncoder;

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
