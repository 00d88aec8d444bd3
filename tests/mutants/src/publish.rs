//! The list of every check, what is done to it, and the test that notices: checked in as `guards.md`,
//! without line numbers, so that it changes only when a check or its test does.

use crate::find::Mutant;
use crate::reasons::Reason;
use crate::score::Fate;
use crate::suite::End;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What a list says of a mutant.
type Key = (String, String, String, String);

fn key(mutant: &Mutant) -> Key {
    (mutant.file.clone(), mutant.function.clone(), mutant.check.clone(), mutant.change.to_string())
}

/// How many there are, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Checks that were changed.
    pub checks: usize,
    /// Mutants: a check may be changed in more than one way.
    pub mutants: usize,
    /// Those that a test noticed.
    pub noticed: usize,
    /// Of these, by a process that crashed.
    pub crashed: usize,
    /// Of these, by a test that did not end.
    pub endless: usize,
    /// Those that nothing noticed and that have a reason.
    pub reasoned: usize,
    /// Those that nothing noticed and that are owed a test.
    pub owed: usize,
    /// Those that nothing noticed.
    pub unexplained: usize,
}

/// Counts.
#[must_use]
pub fn figures(mutants: &[Mutant], fates: &[Fate], reasons: &[Reason]) -> Figures {
    let checks: std::collections::BTreeSet<_> =
        mutants.iter().map(|one| (&one.file, &one.function, &one.check)).collect();
    let mut figures = Figures { checks: checks.len(), mutants: mutants.len(), ..Figures::default() };
    for (mutant, fate) in mutants.iter().zip(fates) {
        match fate {
            Fate::Noticed { how, .. } => {
                figures.noticed += 1;
                figures.crashed += usize::from(*how == End::Crashed);
                figures.endless += usize::from(*how == End::Endless);
            }
            Fate::Survived(_) => match reasons.iter().find(|reason| reason.is_for(mutant)) {
                Some(reason) if reason.owed => figures.owed += 1,
                Some(_) => figures.reasoned += 1,
                None => figures.unexplained += 1,
            },
        }
    }
    figures
}

/// The list as it is checked in.
#[must_use]
pub fn list(mutants: &[Mutant], fates: &[Fate], reasons: &[Reason]) -> String {
    let found = figures(mutants, fates, reasons);
    let mut text = String::from(
        "# Every check of the kernel, and the test that notices when it is gone\n\n\
         Written by `cargo run -p interlock-mutants`, which changes one check at a time and runs the kernel's\n\
         own tests; `UPDATE_EXPECT=1` before it rewrites this file. *never*: the condition is never met, so\n\
         that a refusal is gone; *always*: it is always met.\n\n",
    );
    let _ = writeln!(
        text,
        "{} checks, changed in {} ways: {} noticed, {} not and with a reason, {} owed a test.",
        found.checks,
        found.mutants,
        found.noticed,
        found.reasoned,
        found.owed + found.unexplained
    );
    let mut file = "";
    for (mutant, fate) in mutants.iter().zip(fates) {
        if mutant.file != file {
            file = &mutant.file;
            let _ = write!(text, "\n## {file}\n\n| in | check | change | noticed by |\n|---|---|---|---|\n");
        }
        let by = match fate {
            Fate::Noticed { by, how: End::Failed | End::Passed } => by.clone(),
            Fate::Noticed { by, how } => format!("{by} ({how})"),
            Fate::Survived(_) => {
                let reason = reasons.iter().find(|reason| reason.is_for(mutant));
                format!("nobody: {}", reason.map_or("no reason is known", |reason| &reason.why))
            }
        };
        let cells = [mutant.function.clone(), code(&mutant.check), mutant.change.to_string(), by];
        let _ = writeln!(text, "| {} |", cells.map(|cell| cell.trim().replace('|', "\\|")).join(" | "));
    }
    text
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// The test that noticed each mutant when a list was written.
#[must_use]
pub fn known(list: &str, mutants: &[Mutant]) -> BTreeMap<u32, String> {
    let mut rows = BTreeMap::new();
    let mut file = String::new();
    for line in list.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            name.clone_into(&mut file);
        }
        let row = line.strip_prefix("| ").and_then(|row| row.strip_suffix(" |"));
        let cells: Vec<String> =
            row.map(|row| row.split(" | ").map(|cell| cell.replace("\\|", "|")).collect()).unwrap_or_default();
        if let [function, check, change, by] = cells.as_slice() {
            let check = check.trim_matches('`').to_owned();
            let by = by.split(' ').next().unwrap_or_default().to_owned();
            rows.insert((file.clone(), function.clone(), check, change.clone()), by);
        }
    }
    mutants.iter().filter_map(|mutant| Some((mutant.id, rows.get(&key(mutant))?.clone()))).collect()
}

/// One mutant for the terminal, with its line.
#[must_use]
pub fn line(mutant: &Mutant, fate: &Fate) -> String {
    let fate = match fate {
        Fate::Noticed { by, how: End::Failed | End::Passed } => by.clone(),
        Fate::Noticed { by, how } => format!("{by} ({how})"),
        Fate::Survived(0) => "SURVIVES: no test reaches it".to_owned(),
        Fate::Survived(tests) => format!("SURVIVES {tests} tests that reach it"),
    };
    format!("{}:{} {} `{}` {}: {fate}", mutant.file, mutant.line, mutant.function, mutant.check, mutant.change)
}

#[cfg(test)]
mod tests {
    use super::{known, list};
    use crate::find::{Change, Mutant};
    use crate::score::Fate;
    use crate::suite::End;

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let mutant = |id, check: &str, change| Mutant {
            id,
            site: id,
            file: "decide/a.rs".to_owned(),
            line: 7,
            function: "Draft::of".to_owned(),
            check: check.to_owned(),
            change,
        };
        let mutants = [
            mutant(0, "if a || b", Change::Never),
            mutant(1, "if a || b", Change::Without("b".to_owned())),
            mutant(2, "filter(|x| x > 1)", Change::Sign(">", ">=")),
        ];
        let noticed = |by: &str, how| Fate::Noticed { by: by.to_owned(), how };
        let fates = [noticed("it::one", End::Failed), Fate::Survived(3), noticed("it::two", End::Endless)];
        let read = known(&list(&mutants, &fates, &[]), &mutants);
        let expected = [(0, "it::one"), (1, "nobody:"), (2, "it::two")].map(|(id, by)| (id, by.to_owned()));
        assert_eq!(read, expected.into());
    }
}
