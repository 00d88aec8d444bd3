//! A wire between a client and a daemon that can lose what is sent over it: nothing is reset, nothing is refused,
//! it just does not arrive. As on a network whose firewall forgot the connection.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// What the wire loses.
#[derive(Default)]
struct Loss {
    requests: AtomicBool,
    answers: AtomicBool,
    /// Reads whose bytes were lost.
    lost: AtomicUsize,
}

/// See the module. Its threads end with the connections they serve.
pub(crate) struct Wire {
    pub(crate) url: String,
    loss: Arc<Loss>,
}

impl Wire {
    /// To the daemon at this URL.
    pub(crate) fn to(url: &str) -> anyhow::Result<Self> {
        let daemon = url.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let loss = Arc::new(Loss::default());
        let shared = Arc::clone(&loss);
        std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                // A daemon that is gone takes the connection with it.
                let Ok(server) = TcpStream::connect(&daemon) else { continue };
                let (Ok(back), Ok(forth)) = (client.try_clone(), server.try_clone()) else { continue };
                let (one, other) = (Arc::clone(&shared), Arc::clone(&shared));
                std::thread::spawn(move || pass(client, forth, &one, |loss| &loss.requests));
                std::thread::spawn(move || pass(server, back, &other, |loss| &loss.answers));
            }
        });
        Ok(Self { url, loss })
    }

    /// Whether requests are lost from now on.
    pub(crate) fn lose_requests(&self, lose: bool) {
        self.loss.requests.store(lose, SeqCst);
    }

    /// Whether answers are lost from now on.
    pub(crate) fn lose_answers(&self, lose: bool) {
        self.loss.answers.store(lose, SeqCst);
    }

    /// How often something was lost.
    pub(crate) fn lost(&self) -> usize {
        self.loss.lost.load(SeqCst)
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, loss: &Loss, loses: fn(&Loss) -> &AtomicBool) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if loses(loss).load(SeqCst) {
            loss.lost.fetch_add(1, SeqCst);
        } else if to.write_all(buffer.get(..count).unwrap_or_default()).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
