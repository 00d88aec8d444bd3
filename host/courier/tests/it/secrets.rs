//! A secret goes into one header and nowhere else.

use crate::target::{Act, Target, allowed, get, redirect, say, status};
use interlock_courier::{Allowed, Courier, Outbound, Refusal, Rule, SecretUse, SendError, Sent};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

const VALUE: &str = "hunter2-is-the-secret";

fn bearer() -> SecretUse {
    SecretUse { name: "key".to_owned(), header: "Authorization".to_owned(), prefix: "Bearer ".to_owned() }
}

fn configuration(port: u16, file: &Path, also: &str) -> anyhow::Result<Allowed> {
    allowed(&format!(
        "[effects]\nnetworks = [\"127.0.0.0/8\"]\nsecrets.key.file = {file:?}\n\
         secrets.other.env = \"INTERLOCK_NO_SUCH_VARIABLE\"\n\
         [[effects.allow]]\nurl = \"http://127.0.0.1:{port}/*\"\nmethods = [\"GET\"]\n{also}"
    ))
}

fn with_secret(port: u16, path: &str) -> anyhow::Result<Outbound> {
    Ok(Outbound { secret: Some(bearer()), ..get(&format!("http://127.0.0.1:{port}{path}"))? })
}

#[tokio::test]
async fn a_secret_is_read_at_each_try() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("key");
    std::fs::write(&file, "first\n")?;
    let target = Target::new(vec![status(200)]).await?;
    let courier = Courier::new(configuration(target.port, &file, "secrets = [\"key\"]")?)?;
    courier.send(&with_secret(target.port, "/")?).await?;
    std::fs::write(&file, "second")?;
    courier.send(&with_secret(target.port, "/")?).await?;
    let seen = target.seen();
    assert!(seen[0].contains("\r\nauthorization: Bearer first\r\n"), "{seen:?}");
    assert!(seen[1].contains("\r\nauthorization: Bearer second\r\n"), "{seen:?}");
    Ok(())
}

#[tokio::test]
async fn a_secret_that_is_missing_is_named_and_nothing_is_sent() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("key");
    let target = Target::new(vec![status(200)]).await?;
    let courier = Courier::new(configuration(target.port, &file, "secrets = [\"key\", \"other\"]")?)?;
    for (content, got) in [
        (None, "no file that can be read: No such file or directory (os error 2)".to_owned()),
        (Some(""), "nothing: it is empty".to_owned()),
        (Some("hunter2\nhunter3"), "a value with line breaks or other than printable ASCII characters".to_owned()),
    ] {
        if let Some(content) = content {
            std::fs::write(&file, content)?;
        }
        let error = courier.send(&with_secret(target.port, "/")?).await.expect_err("no secret");
        let refusal = Refusal { rule: Rule::Secret, expected: "the secret `key`".to_owned(), got: got.clone() };
        assert_eq!(error, SendError::Refused(refusal));
        assert_eq!(error.sent(), Sent::Never);
        let missing: Vec<String> =
            courier.allowed().missing(["key", "other", "nobody"]).iter().map(ToString::to_string).collect();
        assert_eq!(
            missing,
            [
                format!("expected the secret `key`, got {got}"),
                "expected the secret `other`, got no value: its environment variable is not set".to_owned(),
                "expected the secret `nobody`, got no such secret in the operator's configuration".to_owned(),
            ]
        );
    }
    std::fs::write(&file, VALUE)?;
    assert_eq!(courier.allowed().missing(["key"]), []);
    assert_eq!(target.seen(), Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_secret_goes_only_where_the_operator_lets_it() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("key");
    std::fs::write(&file, VALUE)?;
    let target = Target::new(vec![status(200)]).await?;
    let courier = Courier::new(configuration(target.port, &file, "")?)?;
    let error = courier.send(&with_secret(target.port, "/")?).await.expect_err("not for this target");
    assert!(matches!(&error, SendError::Refused(Refusal { rule: Rule::Secret, .. })), "{error:?}");
    assert!(error.to_string().contains("lets the secret `key` go to http://127.0.0.1"), "{error}");
    // Beside a header of the same name neither of the two would be sure to count.
    courier.replace(configuration(target.port, &file, "secrets = [\"key\"]")?)?;
    let twice =
        Outbound { headers: vec![("authorization".to_owned(), "x".to_owned())], ..with_secret(target.port, "/")? };
    let error = courier.send(&twice).await.expect_err("twice");
    assert_eq!(
        error.to_string(),
        "refused by header: expected for `authorization` only the secret in it, got another value, too"
    );
    assert_eq!(target.seen(), Vec::<String>::new());
    Ok(())
}

/// Everything that is logged on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

#[tokio::test]
async fn a_secret_is_in_no_log_no_error_and_no_answer() -> anyhow::Result<()> {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone());
    let _guard = tracing::subscriber::set_default(subscriber.finish());

    let folder = tempfile::tempdir()?;
    let file = folder.path().join("key");
    std::fs::write(&file, VALUE)?;
    let loud = VALUE.to_uppercase();
    let echo = format!("HTTP/1.1 200 x\r\nx-request-id: {VALUE}\r\n\r\nyou sent {VALUE}{loud}, thanks");
    let script = vec![
        say(echo),
        status(500),
        redirect(302, &format!("/{VALUE}?{VALUE}")),
        redirect(307, &format!("/{VALUE}%zz")),
        redirect(307, &format!("http://{VALUE}@127.0.0.1/")),
        redirect(307, &format!("https://{loud}.example/{VALUE}")),
        vec![Act::Read],
        say(format!("{VALUE}\r\n\r\n")),
    ];
    let tries = script.len();
    let target = Target::new(script).await?;
    let courier = Courier::new(configuration(target.port, &file, "secrets = [\"key\"]")?)?;
    let outbound = with_secret(target.port, "/path?query=in-the-query")?;
    let mut shown = format!("{courier:?} {outbound:?} {:?}", courier.allowed());
    for nth in 0..tries {
        let tried = courier.send(&outbound).await;
        if let (0, Ok(answer)) = (nth, &tried) {
            assert_eq!(answer.body, "you sent [secret key][secret key], thanks");
            assert_eq!(answer.header("x-request-id"), Some("[secret key]"));
        }
        shown += &format!("{tried:?} {:?}", tried.as_ref().err().map(ToString::to_string));
    }
    assert!(target.seen().iter().all(|request| request.contains(VALUE)), "it was sent");
    assert_eq!(target.seen().len(), tries);
    let text = log.text();
    assert!(!shown.to_lowercase().contains("hunter2"), "{shown}");
    assert!(!text.to_lowercase().contains("hunter2"), "{text}");
    assert!(!text.contains("in-the-query") && !text.contains("/path"), "{text}");
    assert_eq!(text.matches("effect=\"tickets\"").count(), tries, "one line for each try: {text}");
    Ok(())
}

#[tokio::test]
async fn a_secret_that_an_answer_is_cut_in_is_taken_out_as_well() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("key");
    std::fs::write(&file, VALUE)?;
    let target = Target::new(vec![say(format!("HTTP/1.1 200 x\r\n\r\n0123456789{VALUE} and more and more"))]).await?;
    let courier = Courier::new(configuration(target.port, &file, "secrets = [\"key\"]")?)?;
    for (bound, body) in
        [(10, "0123456789"), (11, "0123456789["), (20, "0123456789[secret ke"), (26, "0123456789[secret key] and")]
    {
        let answer = courier.send(&Outbound { answer_bytes_max: bound, ..with_secret(target.port, "/")? }).await?;
        assert_eq!((String::from_utf8_lossy(&answer.body).as_ref(), answer.truncated), (body, true));
    }
    Ok(())
}
