//! Paths into a row, as tables and requests write them: from the row on, `status` or `nodes[0].name`.

use interlock_kernel::value::{Path, Root};

/// The path in a row. `status` and `row.status` are the same; `row` alone is the whole row.
///
/// # Errors
/// What was expected and got.
pub(crate) fn of_row(text: &str) -> Result<Path, String> {
    let whole = text.strip_prefix("row").is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    let absolute = match text.starts_with('[') {
        _ if whole => text.to_owned(),
        true => format!("row{text}"),
        false => format!("row.{text}"),
    };
    let Path { root, segments, .. } = absolute.parse::<Path>().map_err(|why| {
        // What the kernel was shown has a root that nobody wrote.
        why.rsplit_once(" in path ").map_or(why.clone(), |(why, _)| why.to_owned())
    })?;
    debug_assert_eq!(root, Root::Row);
    // Written anew: an index serves a comparison whose field is written like its own.
    Ok(Path::new(root, segments))
}

#[cfg(test)]
mod tests {
    use super::of_row;

    #[test]
    fn a_path_begins_at_the_row_with_or_without_its_name() {
        let read = |text: &str| of_row(text).map(|path| path.to_string());
        for (text, path) in [
            ("status", "row.status"),
            ("row.status", "row.status"),
            ("row", "row"),
            ("row.row", "row.row"),
            ("rows", "row.rows"),
            ("data.size", "row.data.size"),
            ("[0].a", "row[0].a"),
            ("row[0]", "row[0]"),
            (r"a\.b.c[2]", r"row.a\.b.c[2]"),
            (r"\status", "row.status"),
            (r"row\.x", r"row.row\.x"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(path), "{text}");
        }
        for (text, why) in [
            ("", "expected a field name after ."),
            ("a..b", "expected a field name after ."),
            ("row.", "expected a field name after ."),
            ("a[x]", "expected [index]"),
            ("a[0]b", "expected . or [, got 'b'"),
        ] {
            assert_eq!(read(text), Err(why.to_owned()), "{text}");
        }
    }
}
