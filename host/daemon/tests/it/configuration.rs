//! The operator's configuration: read at the start and when the daemon is told to.

use crate::site::Site;

const ALLOWED: &str = "[[effects.allow]]\nurl = \"https://a.example/*\"\nmethods = [\"POST\"]\n";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_allowed_that_no_file_says() -> anyhow::Result<()> {
    let site = Site::new().await?;
    assert_eq!(site.running()?.reload().await?.to_string(), "no request is allowed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_is_wrong_keeps_a_daemon_from_starting() -> anyhow::Result<()> {
    let mut site = Site::new().await?;
    site.stop().await?;
    std::fs::write(site.config(), "[[effects.allow]]\nurl = \"ftp://a.example/\"\nmethod = [\"POST\"]\n")?;
    let refused = site.start().await.err().map(|why| format!("{why:#}")).unwrap_or_default();
    let lines: Vec<&str> = refused.lines().collect();
    assert!(lines.len() >= 3 && lines.iter().all(|line| line.contains("interlock.toml:")), "{refused}");
    std::fs::write(site.config(), "[effects.tls]\nroots = \"nothing.pem\"\n")?;
    let refused = site.start().await.err().map(|why| format!("{why:#}")).unwrap_or_default();
    assert!(refused.contains("nothing.pem"), "{refused}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_cannot_be_used_leaves_the_one_before() -> anyhow::Result<()> {
    let mut site = Site::new().await?;
    site.stop().await?;
    std::fs::write(site.config(), ALLOWED)?;
    site.start().await?;
    let running = site.running()?;
    assert_eq!(running.reload().await?.to_string(), "1 rule, 0 secrets, 0 networks");
    for wrong in ["effects = 7", "[effects.tls]\nroots = \"nothing.pem\"\n"] {
        std::fs::write(site.config(), wrong)?;
        assert!(running.reload().await.is_err(), "{wrong}");
        assert_eq!(running.configuration().to_string(), "1 rule, 0 secrets, 0 networks", "{wrong}");
    }
    std::fs::write(site.config(), "")?;
    running.reload().await?;
    assert_eq!(running.configuration().to_string(), "no request is allowed");
    Ok(())
}
