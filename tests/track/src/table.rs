//! The table of `docs/scenarios.md`, read.

/// One report, and what answers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// What happened to somebody, told as what has to happen here.
    pub(crate) report: String,
    /// Where: project and number.
    pub(crate) origin: String,
    /// The tests that show it.
    pub(crate) tests: Vec<Test>,
    /// Whether all of it is answered, part of it, or nothing yet.
    pub(crate) answered: Answered,
}

/// How much of a report is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    Whole,
    Partly,
    NotYet,
}

/// A test, as the documents name it: `package::module::test`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Test {
    pub(crate) package: String,
    pub(crate) path: String,
}

impl Test {
    fn read(text: &str) -> Option<Self> {
        let (package, path) = text.split_once("::")?;
        let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let parts: Vec<&str> = path.split("::").collect();
        (is_name(package) && parts.len() == 2 && parts.iter().all(|part| is_name(part)))
            .then(|| Self { package: package.to_owned(), path: path.to_owned() })
    }
}

/// Every row of every table whose first column is `report`.
pub(crate) fn rows(text: &str) -> Vec<Row> {
    text.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
    let (report, shown) = (cells.first()?, cells.get(1)?);
    let (report, origin) = report.rsplit_once('[')?;
    let answered = match shown {
        shown if shown.starts_with("not yet") => Answered::NotYet,
        shown if shown.starts_with("partly") => Answered::Partly,
        _ => Answered::Whole,
    };
    let tests = shown.split('`').skip(1).step_by(2).filter_map(Test::read).collect();
    Some(Row { report: report.trim().to_owned(), origin: origin.trim_end_matches(']').to_owned(), tests, answered })
}

#[cfg(test)]
mod tests {
    use super::{Answered, Test, rows};

    #[test]
    fn a_row_is_a_report_its_origin_and_its_tests() {
        let text = "\
# Title
| report | shown by | to run it |
|---|---|---|
| Two at once: one [dbos 1, 2] | `e2e::events::one_wins`, `kernel::twice::again` (`kill-9`) | `cargo test -p x one` |
| Half [etcd 3] | partly: `e2e::steps::half`; missing: `pause` | `cargo test` |
| None [etcd 4] | not yet | |
";
        let rows = rows(text);
        let test = |package: &str, path: &str| Test { package: package.to_owned(), path: path.to_owned() };
        assert_eq!(rows.len(), 3);
        assert_eq!((rows[0].report.as_str(), rows[0].origin.as_str()), ("Two at once: one", "dbos 1, 2"));
        assert_eq!(rows[0].tests, [test("e2e", "events::one_wins"), test("kernel", "twice::again")]);
        assert_eq!(rows[1].tests, [test("e2e", "steps::half")]);
        let answered: Vec<Answered> = rows.iter().map(|row| row.answered).collect();
        assert_eq!(answered, [Answered::Whole, Answered::Partly, Answered::NotYet]);
    }

    #[test]
    fn the_table_names_a_test_for_every_report_that_it_calls_answered() {
        let rows = rows(include_str!("../../../docs/scenarios.md"));
        assert!(rows.len() >= 25, "{}", rows.len());
        for row in rows {
            assert_eq!(row.tests.is_empty(), row.answered == Answered::NotYet, "{}", row.report);
        }
    }
}
