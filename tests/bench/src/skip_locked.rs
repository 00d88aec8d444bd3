//! The same queue in PostgreSQL, by its own benchmark program, where that is installed: a server of this run's own, on
//! a socket in this run's folder, with its own defaults but for the place.

use crate::report::{Group, Row};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TABLES: &str = "
    CREATE TABLE jobs (id bigint PRIMARY KEY, status text NOT NULL, claimed_at timestamptz, claimed_by text, n bigint);
    CREATE INDEX by_status ON jobs (status, id);
    INSERT INTO jobs SELECT n, 'pending', NULL, NULL, n FROM generate_series(1, 100000) n;
    CREATE TABLE counters (id bigint PRIMARY KEY, n bigint);
    INSERT INTO counters SELECT n, 0 FROM generate_series(0, 1000) n;
    ANALYZE;";

const SCRIPTS: [(&str, &str); 3] = [
    ("update", "UPDATE counters SET n = n + 1 WHERE id = :client_id RETURNING n;\n"),
    (
        "upsert",
        "INSERT INTO counters VALUES (:client_id, 1) ON CONFLICT (id) DO UPDATE SET n = counters.n + 1 RETURNING n;\n",
    ),
    (
        "claim of one",
        "UPDATE jobs SET status = 'in_flight', claimed_at = now(), claimed_by = 'bench' WHERE id = (SELECT id FROM jobs \
         WHERE status = 'pending' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING n;\n",
    ),
];

/// The rates of the same operations; nothing if there is no PostgreSQL here.
pub(crate) fn measure(dir: &Path, sizes: &[usize], within: Duration) -> Result<Option<Group>> {
    let Some(programs) = programs() else { return Ok(None) };
    let server = Server::start(&programs, &dir.join("postgres"))?;
    server.psql(&["-c", TABLES])?;
    let mut rows = Vec::new();
    for (name, script) in SCRIPTS {
        let file = server.folder.join("script.sql");
        fs::write(&file, script)?;
        for &clients in sizes {
            let per_second = server.bench(&file, clients, within)?;
            rows.push(Row::new(format!("{name}, {clients} clients"), &[("per_s", per_second)]));
        }
    }
    let note = format!("{}, its defaults, a socket, pgbench -j 2", server.version()?);
    Ok(Some(Group { title: "PostgreSQL: update, upsert, claim with SKIP LOCKED", note, rows }))
}

struct Server {
    process: Child,
    programs: PathBuf,
    folder: PathBuf,
}

impl Server {
    fn start(programs: &Path, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let data = folder.join("data");
        let owner = owner(folder)?;
        let run = |program: &str| {
            let mut command = Command::new(programs.join(program));
            command.current_dir(folder).env("LC_ALL", "C");
            if let Some((uid, gid)) = owner {
                command.uid(uid).gid(gid);
            }
            command
        };
        let made =
            run("initdb").args(["--auth=trust", "--username", "bench", "--encoding=UTF8", "-D"]).arg(&data).output()?;
        if !made.status.success() {
            bail!("initdb: {}", String::from_utf8_lossy(&made.stderr));
        }
        let log = fs::File::create(folder.join("log"))?;
        let mut server = run("postgres");
        server.args(["-c", "listen_addresses=", "-k"]).arg(folder).arg("-D").arg(&data);
        let process = server.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
        let server = Self { process, programs: programs.to_owned(), folder: folder.to_owned() };
        let began = Instant::now();
        while server.psql(&["-c", "SELECT 1"]).is_err() {
            if began.elapsed() > Duration::from_secs(30) {
                bail!("PostgreSQL does not answer: {}", fs::read_to_string(folder.join("log"))?);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.arg("-h").arg(&self.folder).args(["-U", "bench"]);
        command
    }

    fn psql(&self, arguments: &[&str]) -> Result<String> {
        let said = self.client("psql").args(["-d", "postgres", "-qAt"]).args(arguments).output()?;
        if !said.status.success() {
            bail!("psql: {}", String::from_utf8_lossy(&said.stderr));
        }
        Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
    }

    fn version(&self) -> Result<String> {
        Ok(format!("PostgreSQL {}", self.psql(&["-c", "SHOW server_version"])?))
    }

    fn bench(&self, script: &Path, clients: usize, within: Duration) -> Result<f64> {
        let (clients, seconds) = (clients.to_string(), within.as_secs().max(1).to_string());
        let jobs = if clients == "1" { "1" } else { "2" };
        let mut command = self.client("pgbench");
        command.args(["-n", "-M", "prepared", "-c", &clients, "-j", jobs, "-T", &seconds, "-f"]).arg(script);
        let said = command.arg("postgres").output()?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let rate = text.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
        rate.with_context(|| format!("pgbench: {text} {}", String::from_utf8_lossy(&said.stderr)))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let stop = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status();
        if !stop.is_ok_and(|status| status.success()) {
            self.process.kill().ok();
        }
        self.process.wait().ok();
    }
}

/// PostgreSQL refuses to run as root: who is root gives the folder away.
fn owner(folder: &Path) -> Result<Option<(u32, u32)>> {
    if fs::metadata(folder)?.uid() != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let id = |name: &str| {
        let fields: Vec<&str> =
            users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|user| user[0] == name)?;
        Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
    };
    let (uid, gid) = id("postgres").or_else(|| id("nobody")).context("a user to start PostgreSQL as")?;
    chown(folder, Some(uid), Some(gid))?;
    // The folders above are this run's own, and closed to others.
    for above in folder.ancestors().skip(1).take(1) {
        let mut open = fs::metadata(above)?.permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut open, 0o755);
        fs::set_permissions(above, open)?;
    }
    Ok(Some((uid, gid)))
}

/// Where its programs are: by `PATH`, or where Debian keeps them.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    folders
        .into_iter()
        .find(|folder| ["initdb", "postgres", "psql", "pgbench"].iter().all(|program| folder.join(program).is_file()))
}
