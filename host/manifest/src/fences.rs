//! Machines that write to one place under fences that say nothing to each other.

use crate::parse::Manifest;
use crate::problem::Problem;
use interlock_courier::Pattern;
use interlock_kernel::machine::{Machine, Target};
use interlock_kernel::value::Value;

/// A target that another machine writes to as well, and no lease can fence both.
const UNSHARED_FENCE: &str = "unshared-fence";

/// Warnings about the targets of a manifest: one of another machine writes to the same URL, at least one of the two
/// has a lease for its fence, and there is no lease that both could have. What receives both sees two resources, so
/// the newest token of the one machine turns away nobody of the other.
///
/// Where no lease is a fence, each entity speaks for itself, and nothing is said. A lease whose name stands in a field
/// may be any that the machine is granted.
#[must_use]
pub fn unshared_fences<'m>(manifest: &Manifest, others: impl IntoIterator<Item = &'m Machine>) -> Vec<Problem> {
    let machine = &manifest.machine;
    let others: Vec<&Machine> = others.into_iter().filter(|other| other.name != machine.name).collect();
    let mut problems = Vec::new();
    for (name, target) in &machine.targets {
        for other in &others {
            let apart = |(_, theirs): &(_, &Target)| {
                let fenced = target.fence.is_some() || theirs.fence.is_some();
                fenced && meet(target, theirs) && !may_share(&leases(machine, target), &leases(other, theirs))
            };
            let Some((their_name, theirs)) = other.targets.iter().find(apart) else { continue };
            let message = format!(
                "target {name}: {} writes there too, with its target {their_name}, and no lease can fence both: {} \
                 fences this one, {} the other",
                other.name,
                fence(machine, target),
                fence(other, theirs),
            );
            let remedy = "fence both by one lease: grant it to both machines in [leases], and name it as the `fence` \
                          of both targets";
            problems.push(Problem::of_target(UNSHARED_FENCE, &manifest.source, name, message, remedy.to_owned()));
        }
    }
    problems
}

/// Whether both may change what stands at one URL.
fn meet(one: &Target, other: &Target) -> bool {
    let writes = |target: &Target| !matches!(target.method.as_str(), "GET" | "HEAD");
    // What is no pattern the manifest's own check refuses.
    let (Ok(a), Ok(b)) = (Pattern::parse(&one.url), Pattern::parse(&other.url)) else { return false };
    writes(one) && writes(other) && a.overlaps(&b)
}

/// The names of leases that may fence a target: each as it is, or, with a `*` at its end, all that begin so.
fn leases<'m>(machine: &'m Machine, target: &'m Target) -> Vec<&'m str> {
    match &target.fence {
        None => Vec::new(),
        Some(Value::Json(name)) => name.value().as_str().into_iter().collect(),
        Some(Value::From(_)) => machine.leases.granted.keys().map(String::as_str).collect(),
    }
}

fn may_share(ones: &[&str], others: &[&str]) -> bool {
    let meet = |one: &str, other: &str| match (one.strip_suffix('*'), other.strip_suffix('*')) {
        (None, None) => one == other,
        (Some(begins), None) => other.starts_with(begins),
        (None, Some(begins)) => one.starts_with(begins),
        (Some(one), Some(other)) => one.starts_with(other) || other.starts_with(one),
    };
    ones.iter().any(|one| others.iter().any(|other| meet(one, other)))
}

fn fence(machine: &Machine, target: &Target) -> String {
    match &target.fence {
        None => "its entity".to_owned(),
        Some(Value::Json(name)) => format!("the lease {name}"),
        Some(from @ Value::From(_)) => {
            format!("the lease that {from} names, of {}", leases(machine, target).join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::unshared_fences;
    use crate::{Manifest, parse};

    /// A machine with one target at this path, fenced so, that is granted these leases.
    fn machine(name: &str, method: &str, path: &str, fence: &str, granted: &[&str]) -> Manifest {
        let granted = granted.iter().map(|name| format!("\"{name}\" = {{}}\n")).collect::<String>();
        let text = format!(
            "machine = \"{name}\"\nowner = \"tests\"\ninitial = \"idle\"\n[desired.schema]\n[states.idle]\n\
             kind = \"rest\"\n[leases]\n{granted}\n[targets.api]\nmethod = \"{method}\"\n\
             url = \"https://api.example.com/{path}\"\nfence = {fence}\n"
        );
        let report = parse("machine.toml", &text);
        report.manifest.unwrap_or_else(|| panic!("{:?}", report.problems))
    }

    fn said(one: &Manifest, other: &Manifest) -> Vec<String> {
        let found = unshared_fences(one, [&one.machine, &other.machine]);
        found.iter().map(|problem| format!("{}: {}", problem.line, problem.message)).collect()
    }

    #[test]
    fn two_machines_that_write_to_one_place_have_one_lease_for_a_fence() {
        let by_field = "{ from = \"desired.cluster\" }";
        let prod = machine("a", "PUT", "prod/image", "\"cluster/prod\"", &["cluster/prod"]);
        let any = machine("b", "PUT", "{cluster}/image", by_field, &["cluster/*"]);
        let alone = machine("c", "DELETE", "{name}/image", "\"entity\"", &[]);
        let stage = machine("d", "PATCH", "{cluster}/image", by_field, &["cluster/stage/*", "quota"]);
        for (one, other) in [(&prod, &any), (&any, &stage), (&any, &any)] {
            assert_eq!((said(one, other), said(other, one)), (Vec::new(), Vec::new()));
        }
        assert_eq!(
            said(&prod, &alone),
            ["10: target api: c writes there too, with its target api, and no lease can fence both: the lease \
             \"cluster/prod\" fences this one, its entity the other"]
        );
        assert_eq!(said(&alone, &prod).len(), 1, "whichever is looked at");
        assert_eq!(
            said(&stage, &prod),
            ["11: target api: a writes there too, with its target api, and no lease can fence both: the lease that \
             desired.cluster names, of cluster/stage/*, quota fences this one, the lease \"cluster/prod\" the other"]
        );
    }

    #[test]
    fn nothing_is_said_of_other_places_of_reading_or_where_no_lease_is_a_fence() {
        let fenced = machine("a", "PUT", "prod/image", "\"cluster/prod\"", &["cluster/prod"]);
        for (method, path) in [("PUT", "prod/logo"), ("GET", "prod/image"), ("HEAD", "{cluster}/image")] {
            let other = machine("b", method, path, "\"entity\"", &[]);
            assert_eq!((said(&fenced, &other), said(&other, &fenced)), (Vec::new(), Vec::new()));
        }
        let [one, other] = ["a", "b"].map(|name| machine(name, "POST", "tickets", "\"entity\"", &[]));
        assert_eq!(said(&one, &other), Vec::<String>::new());
    }
}
