//! Addresses are judged after they are resolved, and what was judged is what is connected to.

use crate::target::{Names, Target, all_of, allowed, get, status};
use interlock_courier::{Courier, Refusal, Rule, SendError, Sent, Verdict, classify};

/// What would be allowed, were it not for the address.
fn without_networks(origin: &str) -> anyhow::Result<interlock_courier::Allowed> {
    allowed(&format!("[[effects.allow]]\nurl = \"{origin}/*\"\nmethods = [\"GET\"]"))
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused_unless_the_operator_lists_the_network() -> anyhow::Result<()> {
    let target = Target::new(vec![status(200)]).await?;
    let origin = format!("http://localhost:{}", target.port);
    let courier = Courier::new(without_networks(&origin)?)?;
    let refused = courier.send(&get(&format!("{origin}/"))?).await;
    let Err(SendError::Refused(refusal)) = &refused else { panic!("not refused: {refused:?}") };
    assert_eq!(
        (refusal.rule, refusal.expected.as_str()),
        (Rule::Networks, "a public address of localhost, or one in `effects.networks`")
    );
    assert!(refusal.got.contains("127.0.0.1 (loopback)"), "{}", refusal.got);
    assert_eq!(classify(&refused, 0), Verdict::Refused(refusal.clone()));
    assert_eq!(target.seen(), Vec::<String>::new());

    courier.replace(all_of(&origin)?)?;
    assert_eq!(courier.send(&get(&format!("{origin}/"))?).await?.status, 200);
    assert_eq!(target.seen().len(), 1);
    Ok(())
}

#[tokio::test]
async fn an_address_in_the_url_is_judged_as_well() -> anyhow::Result<()> {
    for (host, what) in [
        ("127.0.0.1", "127.0.0.1 (loopback)"),
        ("10.0.0.1", "10.0.0.1 (private)"),
        ("169.254.169.254", "169.254.169.254 (link-local)"),
        ("[::1]", "::1 (loopback)"),
        ("[::ffff:7f00:1]", "::ffff:127.0.0.1 (IPv4-mapped)"),
        ("[64:ff9b::a9fe:a9fe]", "64:ff9b::a9fe:a9fe (NAT64)"),
        ("[2002:7f00:1::]", "2002:7f00:1:: (6to4)"),
        ("[fd00:ec2::254]", "fd00:ec2::254 (unique local)"),
        ("0.0.0.0", "0.0.0.0 (unspecified)"),
    ] {
        let origin = format!("http://{host}:1");
        let error = Courier::new(without_networks(&origin)?)?.send(&get(&format!("{origin}/"))?).await;
        let Err(SendError::Refused(Refusal { rule: Rule::Networks, got, .. })) = error else { panic!("{error:?}") };
        assert_eq!(got, what);
    }
    Ok(())
}

#[tokio::test]
async fn every_address_of_a_name_is_judged() -> anyhow::Result<()> {
    let target = Target::new(vec![status(200)]).await?;
    let origin = format!("http://a.example:{}", target.port);
    // The private one is not tried, though it comes first.
    let names = Names::new(&[&["10.0.0.1", "169.254.169.254", "127.0.0.1"]])?;
    let courier = Courier::new(all_of(&origin)?)?.with_resolver(names);
    assert_eq!(courier.send(&get(&format!("{origin}/"))?).await?.status, 200);

    let courier = Courier::new(all_of(&origin)?)?.with_resolver(Names::new(&[&["10.0.0.1", "::ffff:127.0.0.1"]])?);
    let error = courier.send(&get(&format!("{origin}/"))?).await.expect_err("nothing is left");
    assert_eq!(error.sent(), Sent::Never);
    assert_eq!(
        error.to_string(),
        "refused by networks: expected a public address of a.example, or one in `effects.networks`, got 10.0.0.1 \
         (private), ::ffff:127.0.0.1 (IPv4-mapped)"
    );
    assert_eq!(target.seen().len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_name_that_answers_otherwise_the_second_time_is_not_asked_twice() -> anyhow::Result<()> {
    let target = Target::new(vec![status(200)]).await?;
    let origin = format!("http://rebound.example:{}", target.port);
    let names = Names::new(&[&["127.0.0.1"], &["10.0.0.1"]])?;
    let courier = Courier::new(all_of(&origin)?)?.with_resolver(names.clone());
    assert_eq!(courier.send(&get(&format!("{origin}/"))?).await?.status, 200);
    assert_eq!(names.calls(), 1);
    // The next try asks again, and judges again.
    let refused = courier.send(&get(&format!("{origin}/"))?).await;
    assert!(matches!(&refused, Err(SendError::Refused(Refusal { rule: Rule::Networks, .. }))), "{refused:?}");
    assert_eq!((names.calls(), target.seen().len()), (2, 1));
    Ok(())
}

#[tokio::test]
async fn a_dead_address_is_followed_by_the_next() -> anyhow::Result<()> {
    let target = Target::new(vec![status(200)]).await?;
    let origin = format!("http://a.example:{}", target.port);
    // Nobody listens on the first.
    let courier = Courier::new(all_of(&origin)?)?.with_resolver(Names::new(&[&["127.0.0.2", "127.0.0.1"]])?);
    assert_eq!(courier.send(&get(&format!("{origin}/"))?).await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn manifest_and_operator_both_have_to_allow_it() -> anyhow::Result<()> {
    let target = Target::new(vec![status(200)]).await?;
    let origin = format!("http://127.0.0.1:{}", target.port);
    let narrow = allowed(&format!(
        "[effects]\nnetworks = [\"127.0.0.1\"]\n[[effects.allow]]\nurl = \"{origin}/in/*\"\nmethods = [\"POST\"]"
    ))?;
    let courier = Courier::new(narrow)?;
    let rule = |tried| match tried {
        Err(SendError::Refused(refusal)) => Some(refusal.rule),
        _ => None,
    };
    // The operator's method, the operator's path, and the manifest's pattern.
    assert_eq!(rule(courier.send(&get(&format!("{origin}/in/a"))?).await), Some(Rule::Method));
    assert_eq!(rule(courier.send(&get(&format!("{origin}/out"))?).await), Some(Rule::Allow));
    let mut post = get(&format!("{origin}/in/a"))?;
    post.method = interlock_courier::Method::Post;
    post.declared = format!("{origin}/in/b").parse()?;
    assert_eq!(rule(courier.send(&post).await), Some(Rule::Declared));
    assert_eq!(target.seen(), Vec::<String>::new());
    post.declared = format!("{origin}/in/{{id}}").parse()?;
    assert_eq!(courier.send(&post).await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn a_name_that_only_looks_like_punycode_is_refused() -> anyhow::Result<()> {
    let origin = "http://xn--a.example";
    let courier = Courier::new(all_of(origin)?)?.with_resolver(Names::new(&[&["127.0.0.1"]])?);
    let error = courier.send(&get(&format!("{origin}/"))?).await.expect_err("no punycode");
    assert_eq!(
        error.to_string(),
        "refused by declared: expected one way to read the URL of http://xn--a.example, got one that the URL standard \
         writes in another way"
    );
    Ok(())
}
