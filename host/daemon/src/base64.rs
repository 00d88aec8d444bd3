//! Base64 as RFC 4648, section 4, with padding: how a component travels inside JSON.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text for these bytes.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().enumerate().fold(0u32, |sum, (index, byte)| sum | u32::from(*byte) << (16 - 8 * index));
        for index in 0..4 {
            let letter = ALPHABET[(group >> (18 - 6 * index) & 63) as usize];
            text.push(if index <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// The bytes of this text; none if it is not base64, down to the last unused bit.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let letters = text.as_bytes();
    if !letters.len().is_multiple_of(4) {
        return None;
    }
    let padding = letters.iter().rev().take(2).take_while(|letter| **letter == b'=').count();
    let (content, _) = letters.split_at(letters.len() - padding);
    let mut bytes = Vec::with_capacity(letters.len() / 4 * 3);
    for chunk in content.chunks(4) {
        let mut group = 0u32;
        for (index, letter) in chunk.iter().enumerate() {
            group |= value(*letter)? << (18 - 6 * index);
        }
        let kept = chunk.len() * 3 / 4;
        let [_, whole @ ..] = group.to_be_bytes();
        let (used, unused) = whole.split_at(kept);
        if unused.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(used);
    }
    Some(bytes)
}

fn value(letter: u8) -> Option<u32> {
    let value = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_rfc_4648_hold() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in vectors {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
    }

    #[test]
    fn what_is_not_base64_is_refused() {
        for text in ["Z", "Zg", "Zg=", "Z===", "Zh==", "Zm9=", "Zm 9", "Zm9v\n", "Zm-_", "====", "Zg==Zg=="] {
            assert_eq!(decode(text), None, "{text:?}");
        }
    }

    #[test]
    fn every_byte_comes_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        for end in 0..bytes.len() {
            let (part, _) = bytes.split_at(end);
            assert_eq!(decode(&encode(part)).as_deref(), Some(part));
        }
    }
}
