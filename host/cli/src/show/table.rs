//! Aligned columns.

/// Rows under a head, columns two blanks apart, nothing behind the last word of a line.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|name| name.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    let head: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    for row in std::iter::once(&head).chain(rows) {
        let line: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Names and values, one pair a line; pairs without a value are left out.
pub(crate) fn fields(indent: &str, pairs: &[(&str, String)]) -> String {
    let kept = || pairs.iter().filter(|(_, value)| !value.is_empty());
    let width = kept().map(|(name, _)| name.chars().count()).max().unwrap_or_default().max(8);
    kept().map(|(name, value)| format!("{indent}{name:width$}   {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["longer".to_owned(), String::new()]];
        expect![[r#"
            name    n
            a       1
            longer
        "#]]
        .assert_eq(&table(&["name", "n"], &rows));
    }
}
