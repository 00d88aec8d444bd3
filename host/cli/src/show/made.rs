//! A folder that was made, and what to run next.

use super::Paint;
use crate::commands::new::Made;

/// What is in it, then one command a line.
pub(crate) fn made(made: &Made, paint: Paint) -> String {
    let Made { machine, language, folder, files, next } = made;
    let mut text = format!("{machine}   {}   {language}   in {folder}\n", paint.green("made"));
    for file in files {
        text.push_str(&format!("   {file}\n"));
    }
    text.push_str("next\n");
    for command in next {
        text.push_str(&format!("   {command}\n"));
    }
    text
}
