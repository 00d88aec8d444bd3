//! How a text differs from another, line by line.

/// Lines around a difference that are shown.
const AROUND: usize = 2;
/// Lines of each text that are compared line by line; of longer ones the middle is shown whole.
const COMPARED_MAX: usize = 2_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Both,
    Old,
    New,
}

/// What was, with `-`, and what is, with `+`, and two lines around each place; empty if they are the same.
pub(crate) fn diff(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let lines = lines(&old, &new);
    let near = |at: usize| {
        let around = at.saturating_sub(AROUND)..=at.saturating_add(AROUND);
        lines
            .get(*around.start()..lines.len().min(around.end() + 1))
            .is_some_and(|near| near.iter().any(|(side, _)| *side != Side::Both))
    };
    let mut text = String::new();
    let mut left_out = false;
    for (at, (side, line)) in lines.iter().enumerate() {
        if !near(at) {
            left_out = true;
            continue;
        }
        if left_out {
            text.push_str("  ...\n");
            left_out = false;
        }
        let mark = match side {
            Side::Both => ' ',
            Side::Old => '-',
            Side::New => '+',
        };
        text.push_str(format!("{mark} {line}").trim_end());
        text.push('\n');
    }
    text
}

/// The shortest way from one text to the other: the longest common subsequence of what lies between their
/// common beginning and end.
fn lines<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(Side, &'t str)> {
    let same_start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[same_start..], &new[same_start..]);
    let same_end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_mid, new_mid) = (&old_rest[..old_rest.len() - same_end], &new_rest[..new_rest.len() - same_end]);
    let both = |lines: &[&'t str]| lines.iter().map(|line| (Side::Both, *line)).collect::<Vec<_>>();
    let mut all = both(&old[..same_start]);
    if old_mid.len().max(new_mid.len()) > COMPARED_MAX {
        all.extend(old_mid.iter().map(|line| (Side::Old, *line)));
        all.extend(new_mid.iter().map(|line| (Side::New, *line)));
    } else {
        all.extend(middle(old_mid, new_mid));
    }
    all.extend(both(&old_rest[old_rest.len() - same_end..]));
    all
}

fn middle<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(Side, &'t str)> {
    // common[i][j]: lines that old[i..] and new[j..] have in common, in order.
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] =
                if old[i] == new[j] { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut all = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            all.push((Side::Both, old[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || common[i + 1][j] >= common[i][j + 1]) {
            all.push((Side::Old, old[i]));
            i += 1;
        } else {
            all.push((Side::New, new[j]));
            j += 1;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn only_what_differs_is_shown_and_a_little_around_it() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n";
        let new = "a\nb\nc\nd\nE\nf\ng\nh\ni\nk\nl\n";
        expect![[r#"
              ...
              c
              d
            - e
            + E
              f
              g
              h
              i
            - j
              k
            + l
        "#]]
        .assert_eq(&diff(old, new));
        assert_eq!(diff(old, old), "");
        assert_eq!(diff("", "a\n"), "+ a\n");
        assert_eq!(diff("a\n", ""), "- a\n");
    }
}
