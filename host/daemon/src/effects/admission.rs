//! What a machine declares and the operator's configuration could never admit: said when it is deployed or checked,
//! before an effect is refused.

use super::Configuration;
use interlock_courier::{Method, Pattern};
use interlock_kernel::ids::Name;
use interlock_kernel::machine::{Machine, Target};
use interlock_manifest::Problem;

/// A target that no rule of the operator's could admit.
const NOT_ALLOWED: &str = "target-not-allowed";
/// A target's secret that could not be sent now.
const SECRET_MISSING: &str = "secret-missing";

/// Warnings about a machine's targets, at their places in its manifest. Reads the files of secrets.
#[must_use]
pub fn not_admitted(manifest: &str, machine: &Machine, configuration: &Configuration) -> Vec<Problem> {
    let Configuration(allowed) = configuration;
    let mut problems = Vec::new();
    for (name, target) in &machine.targets {
        // What is no pattern or method the manifest's own check refuses.
        let (Ok(method), Ok(pattern)) = (target.method.parse::<Method>(), Pattern::parse(&target.url)) else {
            continue;
        };
        let secret = target.secret.as_ref().map(|secret| secret.name.as_str());
        if !allowed.could_admit(method, &pattern, secret) {
            problems.push(not_allowed(manifest, name, target));
        }
        for missing in allowed.missing(secret) {
            let message = format!("target {name}: {missing}");
            let remedy = format!("give [effects.secrets.{}] of the operator's configuration a value", missing.name);
            problems.push(Problem::of_target(SECRET_MISSING, manifest, name, message, remedy));
        }
    }
    problems
}

fn not_allowed(manifest: &str, name: &Name, target: &Target) -> Problem {
    let (method, url) = (&target.method, &target.url);
    let (with, secrets) = match &target.secret {
        Some(secret) => (format!(" with the secret `{}`", secret.name), format!(", secrets = [{:?}]", secret.name)),
        None => (String::new(), String::new()),
    };
    let message =
        format!("target {name}: the operator's configuration allows no {method} {url}{with}; its effects are denied");
    let remedy =
        format!("have the operator add [[effects.allow]] url = {url:?} or wider, methods = [{method:?}]{secrets}");
    Problem::of_target(NOT_ALLOWED, manifest, name, message, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_courier::Allowed;
    use std::path::Path;

    fn found(configuration: &str) -> Result<String, Box<dyn std::error::Error>> {
        let manifest = "machine = \"m\"\n\n  [targets.ticket]\nurl = \"https://a.example/{id}\"\n";
        let mut machine = crate::effects::tests::machine()?;
        let secret = interlock_kernel::machine::SecretUse {
            name: "tickets".to_owned(),
            header: "Authorization".to_owned(),
            prefix: "Bearer ".to_owned(),
        };
        let target = Target { secret: Some(secret), ..crate::effects::tests::target("https://a.example/{id}") };
        machine.targets.insert("ticket".parse()?, target);
        let configuration = Configuration(Allowed::parse(Path::new("interlock.toml"), configuration, &[])?);
        let problems = not_admitted(manifest, &machine, &configuration);
        let line = |p: &Problem| format!("{}:{} {}: {}; {}\n", p.line, p.column, p.code, p.message, p.remedy);
        Ok(problems.iter().map(line).collect())
    }

    #[test]
    fn what_could_never_be_sent_is_said_with_what_to_write() -> Result<(), Box<dyn std::error::Error>> {
        assert_eq!(
            found("")?,
            "3:3 target-not-allowed: target ticket: the operator's configuration allows no POST https://a.example/{id} \
             with the secret `tickets`; its effects are denied; have the operator add [[effects.allow]] url = \
             \"https://a.example/{id}\" or wider, methods = [\"POST\"], secrets = [\"tickets\"]\n\
             3:3 secret-missing: target ticket: expected the secret `tickets`, got no such secret in the operator's \
             configuration; give [effects.secrets.tickets] of the operator's configuration a value\n"
        );
        let allowed =
            "[[effects.allow]]\nurl = \"https://a.example/*\"\nmethods = [\"POST\"]\nsecrets = [\"tickets\"]\n";
        let unset = found(&format!("{allowed}[effects.secrets.tickets]\nenv = \"INTERLOCK_NO_SUCH_VARIABLE\"\n"))?;
        assert_eq!(unset.lines().count(), 1, "{unset}");
        assert!(unset.contains("secret-missing") && unset.contains("environment variable is not set"), "{unset}");
        assert_eq!(found(&format!("{allowed}[effects.secrets.tickets]\nenv = \"PATH\"\n"))?, "");
        Ok(())
    }
}
