//! `interlock demo`.
use crate::args::Demo;
use crate::failed::Failed;
use crate::out::Out;
pub(crate) async fn run(_: Demo, _: Out) -> Result<(), Failed> {
    Ok(())
}
