//! Server-sent events, as much of them as the daemon sends.

use crate::failed::{Failed, Silence};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::Response;

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its position: where a later stream goes on behind.
    pub(crate) id: String,
    /// What kind of event it is.
    pub(crate) name: String,
    /// Its data.
    pub(crate) data: String,
}

/// The events of one response, as they arrive.
pub(crate) struct Stream {
    url: String,
    chunks: BoxStream<'static, Result<Vec<u8>, String>>,
    buffer: Vec<u8>,
}

impl Stream {
    pub(crate) fn new(response: Response) -> Self {
        let url = response.url().to_string();
        let chunks = response.bytes_stream();
        let chunks = chunks.map(|chunk| chunk.map(|chunk| chunk.to_vec()).map_err(|why| why.to_string())).boxed();
        Self { url, chunks, buffer: Vec::new() }
    }

    /// The next event; none when the daemon ended the stream in good order.
    ///
    /// # Errors
    /// [`Failed::Unreachable`] if the connection broke.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Failed> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
                match parse(&String::from_utf8_lossy(&block)) {
                    Some(event) => return Ok(Some(event)),
                    None => continue,
                }
            }
            match self.chunks.next().await {
                Some(Ok(chunk)) => self.buffer.extend_from_slice(&chunk),
                Some(Err(why)) => {
                    return Err(Failed::Unreachable { url: self.url.clone(), why: Silence::Broken(why) });
                }
                None => return Ok(None),
            }
        }
    }
}

/// One block of lines; none if it is only comments, which keep the connection alive.
fn parse(block: &str) -> Option<Event> {
    let mut event = Event::default();
    let mut lines = Vec::new();
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => event.id = value.to_owned(),
            "event" => event.name = value.to_owned(),
            "data" => lines.push(value),
            _ => {}
        }
    }
    event.data = lines.join("\n");
    (!lines.is_empty()).then_some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_events_and_comments_are_not() {
        let event = |id: &str, name: &str, data: &str| Event { id: id.into(), name: name.into(), data: data.into() };
        assert_eq!(parse("id: 7\nevent: entry\ndata: {\"a\":1}\n\n"), Some(event("7", "entry", "{\"a\":1}")));
        assert_eq!(parse("data:one\ndata: two\n\n"), Some(event("", "", "one\ntwo")));
        assert_eq!(parse(": still here\n\n"), None);
        assert_eq!(parse("\n\n"), None);
    }
}
