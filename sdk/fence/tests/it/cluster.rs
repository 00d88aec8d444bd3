//! A PostgreSQL cluster in a temporary folder, reached over a socket there. It stops with the last test that uses
//! it, and also when the test process is killed.

use crate::tools::{find, missing};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

const USER: &str = "interlock";
/// Longer than the slowest machine needs for a start; nobody waits so long for one that comes.
const START_MAX: Duration = Duration::from_secs(60);
/// A server that stops when its standard input ends, which is when whoever started it is gone, however.
const WHILE_STDIN_LASTS: &str = r#"exec 3<&0
"$@" 3<&- &
server=$!
{ read -r _ <&3; kill -INT $server; } &
exec 3<&-
wait $server"#;

pub(crate) struct Cluster {
    folder: TempDir,
    server: Child,
}

impl Cluster {
    /// The one that runs, or a new one. None if PostgreSQL is not installed; that has been said then.
    pub(crate) fn shared() -> Option<Arc<Self>> {
        static RUNNING: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cluster) = running.upgrade() {
            return Some(cluster);
        }
        let Some(programs) = programs() else {
            missing("PostgreSQL (initdb, postgres)", "apt-get install postgresql, or put its bin folder into PATH");
            return None;
        };
        let cluster = Arc::new(Self::start(&programs));
        *running = Arc::downgrade(&cluster);
        Some(cluster)
    }

    /// Where its socket is.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) async fn connect(&self, database: &str) -> Result<Client, tokio_postgres::Error> {
        let mut config = tokio_postgres::Config::new();
        let (client, connection) = config.host_path(self.folder()).user(USER).dbname(database).connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// A new, empty database.
    pub(crate) async fn database(&self, name: &str) {
        self.until_ready().await.batch_execute(&format!("CREATE DATABASE \"{name}\"")).await.unwrap();
    }

    async fn until_ready(&self) -> Client {
        let asked = async {
            loop {
                match self.connect("postgres").await {
                    Ok(client) => return client,
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        };
        let log = || fs::read_to_string(self.folder().join("log")).unwrap_or_default();
        tokio::time::timeout(START_MAX, asked).await.unwrap_or_else(|_| panic!("PostgreSQL does not answer: {}", log()))
    }

    fn start(programs: &Path) -> Self {
        let folder = TempDir::with_prefix("interlock-pg-").unwrap();
        let owner = unprivileged(folder.path());
        let data = folder.path().join("data");
        let mut initdb = program(&programs.join("initdb"), folder.path(), owner);
        initdb.args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "--username", USER]);
        let made = initdb.arg("-D").arg(&data).output().unwrap();
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));

        let mut server = program(Path::new("sh"), folder.path(), owner);
        server.args(["-c", WHILE_STDIN_LASTS, "sh"]).arg(programs.join("postgres")).arg("-D").arg(&data);
        // No power is cut here: what a transaction may see is tested, and not the disk.
        server.args(["-c", "listen_addresses=", "-c", "fsync=off", "-k"]).arg(folder.path());
        // A test that waits for itself fails instead.
        server.args(["-c", "lock_timeout=60s"]);
        let log = File::create(folder.path().join("log")).unwrap();
        server.stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log);
        Self { server: server.spawn().unwrap(), folder }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        self.server.wait().ok();
    }
}

type Owner = Option<(u32, u32)>;

/// PostgreSQL refuses to run as root: who is root gives the folder to the package's user, or to nobody.
fn unprivileged(folder: &Path) -> Owner {
    if fs::metadata(folder).unwrap().uid() != 0 {
        return None;
    }
    let (uid, gid) = user("postgres").or_else(|| user("nobody")).expect("a user to start PostgreSQL as");
    chown(folder, Some(uid), Some(gid)).unwrap();
    Some((uid, gid))
}

fn program(program: &Path, folder: &Path, owner: Owner) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env("LC_ALL", "C");
    if let Some((uid, gid)) = owner {
        command.uid(uid).gid(gid);
    }
    command
}

fn user(name: &str) -> Owner {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields[0] == name)?;
    Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
}

/// The folder of the programs: by `PATH`, or where Debian keeps them.
fn programs() -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|found| found.filter_map(|version| Some(version.ok()?.path().join("bin"))).collect())
        .unwrap_or_default();
    versions.sort();
    let initdb = fs::canonicalize(find("initdb", &versions)?).ok()?;
    Some(initdb.parent()?.to_owned()).filter(|folder| folder.join("postgres").is_file())
}
