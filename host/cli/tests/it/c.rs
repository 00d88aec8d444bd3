//! Steps in C, as far as they are C's alone. What all languages have in common is in `guests/behaviour`.

use crate::run;
use anyhow::{Result, ensure};

/// Shapes of documents, exact numbers, memory, what is printed, and how a step ends early.
#[test]
fn what_is_c_alone_is_as_its_scenarios_say() -> Result<()> {
    let folder = interlock_support::guest_folder("resource").join("../../sdk/c/tests");
    let (code, out, err) = run("http://127.0.0.1:1", &["test", &folder.display().to_string()])?;
    if err.contains("apt-get install clang") && std::env::var("INTERLOCK_TOOLS").as_deref() != Ok("required") {
        println!("passed over: {err}");
        return Ok(());
    }
    ensure!(code == Some(0) && out.contains("5 ok"), "{code:?}\n{out}\n{err}");
    Ok(())
}
