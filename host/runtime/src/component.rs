//! From bytes to a component: a component as it is, a core module lifted.
//!
//! What the component imports is judged in `check.rs`; here only its shape.

use crate::check::Problem;
use crate::limits::COMPONENT_BYTES_MAX;
use std::borrow::Cow;
use wit_component::ComponentEncoder;

/// The fourth number of a binary's header tells a component from a core module.
const CORE: [u8; 8] = [0, b'a', b's', b'm', 1, 0, 0, 0];
const COMPONENT: [u8; 8] = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];

/// Section numbers of a core module.
const CUSTOM_SECTION: u8 = 0;
const IMPORT_SECTION: u8 = 2;

/// The component in these bytes.
///
/// # Errors
/// [`Problem`]: not WebAssembly, too large, a core module that cannot be lifted.
pub(crate) fn component(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Problem> {
    let whole = || "component".to_owned();
    if bytes.len() > COMPONENT_BYTES_MAX {
        return Err(Problem {
            code: "too-large",
            subject: whole(),
            expected: format!("at most {COMPONENT_BYTES_MAX} bytes (component_bytes_max)"),
            got: format!("{} bytes", bytes.len()),
            remedy: "strip debug information: `wasm-tools strip`, or strip = true in the release profile".to_owned(),
        });
    }
    if bytes.starts_with(&COMPONENT) {
        return Ok(Cow::Borrowed(bytes));
    }
    if !bytes.starts_with(&CORE) {
        return Err(Problem {
            code: "not-wasm",
            subject: whole(),
            expected: "a WebAssembly component, or a core module with its component type".to_owned(),
            got: header(bytes),
            remedy: "deploy the .wasm file that the build wrote".to_owned(),
        });
    }
    lift(bytes).map(Cow::Owned)
}

fn header(bytes: &[u8]) -> String {
    match bytes {
        [] => "nothing".to_owned(),
        [0, b'a', b's', b'm', version @ ..] => {
            format!("WebAssembly of another version: {:02x?}", version.get(..4).unwrap_or(version))
        }
        [b'(', ..] => "WebAssembly text".to_owned(),
        other => format!("a file that begins with {:02x?}", other.get(..4).unwrap_or(other)),
    }
}

fn lift(module: &[u8]) -> Result<Vec<u8>, Problem> {
    let sections = sections(module);
    let imports_wasip1 =
        sections.iter().any(|(id, body)| *id == IMPORT_SECTION && contains(body, b"wasi_snapshot_preview1"));
    if imports_wasip1 {
        return Err(Problem {
            code: "wasip1",
            subject: "wasi_snapshot_preview1".to_owned(),
            expected: "a component, which imports WASI 0.2".to_owned(),
            got: "a core module that imports WASI 0.1".to_owned(),
            remedy: "build for wasm32-wasip2, or for wasm32-unknown-unknown if the step needs no WASI; \
                     wasm32-wasip1 is not linked"
                .to_owned(),
        });
    }
    let has_component_type = sections
        .iter()
        .any(|(id, body)| *id == CUSTOM_SECTION && contains(body.get(..64).unwrap_or(body), b"component-type"));
    if !has_component_type {
        return Err(Problem {
            code: "no-component-type",
            subject: "core module".to_owned(),
            expected: "the section component-type, which says what it imports and exports".to_owned(),
            got: "a core module without it".to_owned(),
            remedy: "build the step with the SDK, or with wit-bindgen from world interlock:step/step".to_owned(),
        });
    }
    let lifted = ComponentEncoder::default().module(module).and_then(|encoder| encoder.validate(true).encode());
    lifted.map_err(|why| Problem {
        code: "not-liftable",
        subject: "core module".to_owned(),
        expected: "a core module that fits its own component type".to_owned(),
        got: format!("{why:#}"),
        remedy: "build it again from clean, with one version of wit-bindgen or the SDK".to_owned(),
    })
}

/// The sections of a core module, as far as they can be told apart: number and body.
fn sections(module: &[u8]) -> Vec<(u8, &[u8])> {
    let mut rest = module.get(CORE.len()..).unwrap_or_default();
    let mut found = Vec::new();
    while let Some((&id, after)) = rest.split_first() {
        let Some((size, after)) = leb128(after) else { break };
        let Some((body, after)) = after.split_at_checked(size) else { break };
        found.push((id, body));
        rest = after;
    }
    found
}

fn leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value: u64 = 0;
    for (index, byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, bytes.get(index + 1..)?));
        }
    }
    None
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}
