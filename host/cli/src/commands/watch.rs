//! Streams that go on behind the last position after every break, until somebody ends them.

use crate::client::Stream;
use crate::failed::Failed;
use crate::out::Out;
use std::time::Duration;

/// The pause before a broken stream is taken up again.
const AGAIN: Duration = Duration::from_secs(1);

/// Tells a stream's events, each with its name and data. `open` begins one behind a position.
pub(super) async fn watch(
    after: Option<String>,
    out: Out,
    open: impl AsyncFn(Option<&str>) -> Result<Stream, Failed>,
    told: impl Fn(&str, &str, Out),
) -> Result<(), Failed> {
    let mut position = after;
    let mut is_told = false;
    loop {
        let mut stream = match open(position.as_deref()).await {
            Ok(stream) => stream,
            // Nobody was there from the start, or somebody said no: that will not get better by waiting.
            Err(failed) if position.is_none() || matches!(failed, Failed::Problem(_)) => return Err(failed),
            Err(failed) => {
                // Once for each time that it goes away.
                if !is_told {
                    out.hint(&format!("{failed}; what happens is told again once it answers"));
                    is_told = true;
                }
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        is_told = false;
        loop {
            match stream.next().await {
                Ok(Some(event)) => {
                    position = Some(event.id.clone());
                    told(&event.name, &event.data, out);
                }
                Ok(None) => break out.hint("the daemon ended the stream; taking it up again"),
                Err(_) => break out.hint("the connection to the daemon broke; taking the stream up again"),
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}
