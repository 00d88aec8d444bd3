//! Documents: one canonical text, exact integers, a digest over the text.

use interlock_kernel::doc::{BadDoc, Digest, Doc};

#[test]
fn the_canonical_text_is_one_whatever_was_written() {
    let table = [
        (r#" { "b" : 1 , "a" : [ true , null ] } "#, r#"{"a":[true,null],"b":1}"#),
        (r#""\u00fc\u0041\n\u001f\/""#, r#""üA\n\u001f/""#),
        (r#"{"b":{"d":1,"c":2},"a":{}}"#, r#"{"a":{},"b":{"c":2,"d":1}}"#),
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        (r#"{"ä":1,"z":2,"":3,"A":4}"#, r#"{"":3,"A":4,"z":2,"ä":1}"#),
        ("1.0", "1.0"),
        ("1e2", "100.0"),
        ("0.1", "0.1"),
        ("[true,false]", "[true,false]"),
        ("99999999999999999999e1", "1e+21"),
        ("99999999999999999999E1", "1e+21"),
        ("0e+99999999999999999999", "0.0"),
        ("0e-99999999999999999999", "0.0"),
        ("1E400", "syntax"),
        ("9007199254740993", "9007199254740993"),
        ("18446744073709551615", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("123456789.123456789", "123456789.12345679"),
    ];
    for (text, expected) in table {
        match Doc::parse(text) {
            Ok(doc) => {
                assert_eq!(doc.text(), expected, "{text}");
                assert_eq!(Doc::parse(doc.text()).unwrap(), doc);
                assert_eq!(Doc::new(doc.value().clone()), doc);
            }
            Err(bad) => assert_eq!((expected, matches!(bad, BadDoc::Syntax(_))), ("syntax", true), "{text}: {bad}"),
        }
    }
}

#[test]
fn an_integer_outside_64_bits_is_refused_wherever_it_stands() {
    let long = ["18446744073709551616", "-9223372036854775809", "99999999999999999999999999"];
    for digits in long {
        for text in [digits.to_owned(), format!("[1,{digits}]"), format!(r#"{{"a":{{"b":{digits}}}}}"#)] {
            assert_eq!(Doc::parse(&text), Err(BadDoc::Integer(digits.to_owned())), "{text}");
        }
        for text in [format!("\"{digits}\""), format!(r#"{{"{digits}":"\"{digits}\\"}}"#), format!("{digits}.0")] {
            assert!(Doc::parse(&text).is_ok(), "{text}");
        }
    }
}

#[test]
fn what_is_not_json_is_refused_with_line_and_column() {
    for bad in ["", "{", "nul", "'a'", "{a:1}", "[1,]", "1 2", "NaN", "Infinity", "\"\u{1}\"", "01"] {
        let Err(BadDoc::Syntax(why)) = Doc::parse(bad) else { panic!("{bad}") };
        assert!(why.contains("line"), "{why}");
    }
}

#[test]
fn digests_tell_documents_and_lists_of_parts_apart() {
    let digest = |text| Doc::parse(text).unwrap().digest();
    assert_eq!(digest(r#"{"a":1,"b":2}"#), digest(r#"{ "b":2, "a":1 }"#));
    assert_ne!(digest("1"), digest("1.0"));
    assert_ne!(Digest::of(&[b"ab", b"c"]), Digest::of(&[b"a", b"bc"]));
    assert_ne!(Digest::of(&[b"a", b""]), Digest::of(&[b"", b"a"]));
    let shown = digest("1").to_string();
    assert_eq!(shown.parse(), Ok(digest("1")));
    let grown = format!("{shown}0");
    let (letters, wide, signs) = (shown.replace(char::is_numeric, "g"), "ü".repeat(32), "+f".repeat(32));
    for bad in ["", "0", &shown[1..], &grown, &letters, &wide, &signs] {
        assert!(bad.parse::<Digest>().is_err(), "{bad}");
    }
    // blake3 as it is published: of the empty input.
    let empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
    assert_eq!(Digest::of(&[b""]).to_string(), empty);
}
