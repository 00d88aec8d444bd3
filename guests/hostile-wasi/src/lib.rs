//! Steps that reach for the machine around them through WASI: `data.name` says for what.
//! `guests/hostile/README.md` has the list, and what becomes of each.
//!
//! A step that got nothing goes to `calm` and says what it was told; one that got something goes
//! to `alarm`.

use interlock::{Done, Entity, Failure, steps, to};
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::time::{Duration, Instant, SystemTime};
use std::{env, fs, process, thread};

#[derive(Serialize, Deserialize)]
struct Data {
    name: String,
    said: Vec<String>,
}

/// What was got, or the error instead.
type Got = Result<String, String>;

fn attempt(entity: &Entity) -> Result<Done, Failure> {
    let mut data: Data = entity.data()?;
    let answers: Vec<Got> = match data.name.as_str() {
        "no-files" => files(),
        "no-sockets" => sockets(),
        "no-environment" => environment(),
        "no-stdin" => vec![stdin()],
        "no-threads" => vec![threads()],
        "virtual-clock" => vec![sleep(Duration::from_secs(2))],
        "sleep-past-deadline" => vec![sleep(Duration::from_secs(3_600))],
        "seeded-random" => vec![random(entity.attempt())?],
        "stdout-flood" => vec![flood()],
        "exit" => process::exit(0),
        "exit-failed" => process::exit(3),
        "abort" => process::abort(),
        unknown => {
            return Err(Failure::permanent(format!("there is no attempt {unknown:?}")));
        }
    };
    let through = answers.iter().any(Result::is_ok);
    data.said = answers.into_iter().map(|answer| answer.unwrap_or_else(|e| e)).collect();
    Ok(entity.transition(to(if through { "alarm" } else { "calm" }).data(&data))?)
}

fn files() -> Vec<Got> {
    vec![
        got("read /etc/passwd", fs::read("/etc/passwd").map(|bytes| bytes.len())),
        got("list /", fs::read_dir("/").map(Iterator::count)),
        got("list .", fs::read_dir(".").map(Iterator::count)),
        got("write /tmp/x", fs::write("/tmp/x", "x")),
        got("make a folder", fs::create_dir("x")),
        got("remove ..", fs::remove_dir_all("..")),
        got("link", fs::hard_link("/etc/passwd", "x")),
    ]
}

fn sockets() -> Vec<Got> {
    vec![
        got("connect to loopback", TcpStream::connect("127.0.0.1:80")),
        got("connect to metadata", TcpStream::connect("169.254.169.254:80")),
        got("connect over IPv6", TcpStream::connect("[::1]:80")),
        got("listen", TcpListener::bind("0.0.0.0:0")),
        got("UDP", UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(b"x", "127.0.0.1:53"))),
        got("look up a name", ("localhost", 80).to_socket_addrs().map(Iterator::count)),
    ]
}

fn environment() -> Vec<Got> {
    let none = |what: &str, count: usize| {
        if count == 0 { Err(format!("{what}: none")) } else { Ok(format!("{what}: {count}")) }
    };
    vec![
        none("variables", env::vars_os().count()),
        none("PATH", env::var_os("PATH").iter().count()),
        none("arguments", env::args_os().count()),
        none("current folder", env::current_dir().iter().filter(|folder| folder.as_os_str() != "/").count()),
    ]
}

fn stdin() -> Got {
    let mut line = [0; 16];
    match io::stdin().read(&mut line) {
        Ok(0) => Err("stdin: closed".to_owned()),
        answer => got("stdin", answer),
    }
}

fn threads() -> Got {
    got("a thread", thread::Builder::new().spawn(|| ()).map(drop))
}

/// A sleep moves the clock instead of waiting: the test looks at the real time it took.
fn sleep(span: Duration) -> Got {
    let (instant, wall) = (Instant::now(), SystemTime::now());
    thread::sleep(span);
    let (instant, wall) = (instant.elapsed(), wall.elapsed().unwrap_or_default());
    // More than a second beyond it would be real time on top.
    let moved = |by: Duration| by >= span && by < span + Duration::from_secs(1);
    if moved(instant) && moved(wall) {
        Err(format!("the clocks moved by {} ms", span.as_millis()))
    } else {
        Ok(format!("slept {span:?}: instant {instant:?}, wall {wall:?}"))
    }
}

/// The first attempt fails with what it drew; the second says what it drew. They must agree.
fn random(attempt: u32) -> Result<Got, Failure> {
    let drawn = format!("{:016x}", RandomState::new().hash_one(0));
    if attempt == 1 { Err(Failure::retry(drawn).code("drawn")) } else { Ok(Err(drawn)) }
}

fn flood() -> Got {
    let line = format!("{}\u{1b}[2J\r\n", "x".repeat(1_000));
    for _ in 0..10_000 {
        let written = io::stdout().write_all(line.as_bytes()).and_then(|()| io::stderr().write_all(line.as_bytes()));
        if let Err(e) = written {
            return Err(format!("stdout: {e}"));
        }
    }
    Err("20 MB were printed".to_owned())
}

fn got<T>(what: &str, answer: io::Result<T>) -> Got {
    match answer {
        Ok(_) => Ok(format!("{what}: got it")),
        Err(e) => Err(format!("{what}: {e}")),
    }
}

steps!(attempt);
