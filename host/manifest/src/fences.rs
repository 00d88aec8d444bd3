//! Leases that fence the effects of several machines.

use interlock_kernel::ids::MachineName;
use interlock_kernel::machine::Machine;
use interlock_kernel::value::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A lease by which several machines fence effects, though not all of them are granted it: those that are not have
/// every such effect refused, since none of their executions can hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedFence {
    /// The lease.
    pub lease: String,
    /// The machines that name it.
    pub machines: Vec<MachineName>,
    /// Those of them that are not granted it.
    pub without: Vec<MachineName>,
}

impl fmt::Display for SharedFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &[MachineName]| names.iter().map(MachineName::as_str).collect::<Vec<_>>().join(", ");
        let (lease, all, without) = (&self.lease, list(&self.machines), list(&self.without));
        write!(f, "the lease `{lease}` fences effects of {all}, and is not granted to {without}")
    }
}

/// The fences that machines share without all being granted them, by lease. Names that stand in a field are only
/// known once it is filled.
#[must_use]
pub fn shared_fences<'m>(machines: impl IntoIterator<Item = &'m Machine>) -> Vec<SharedFence> {
    let mut named: BTreeMap<&str, BTreeMap<&MachineName, bool>> = BTreeMap::new();
    for machine in machines {
        for fence in machine.targets.values().filter_map(|target| target.fence.as_ref()) {
            let Value::Json(literal) = fence else { continue };
            let Some(lease) = literal.value().as_str() else { continue };
            named.entry(lease).or_default().insert(&machine.name, is_granted(machine, lease));
        }
    }
    let shared = named.into_iter().filter(|(_, by)| by.len() > 1 && by.values().any(|granted| !granted));
    shared
        .map(|(lease, by)| {
            let without: BTreeSet<_> = by.iter().filter(|(_, granted)| !**granted).map(|(name, _)| *name).collect();
            SharedFence {
                lease: lease.to_owned(),
                machines: by.keys().map(|name| (*name).clone()).collect(),
                without: without.into_iter().cloned().collect(),
            }
        })
        .collect()
}

fn is_granted(machine: &Machine, lease: &str) -> bool {
    let covers = |name: &String| match name.strip_suffix('*') {
        Some(beginning) => lease.starts_with(beginning),
        None => name == lease,
    };
    machine.leases.granted.keys().any(covers)
}

#[cfg(test)]
mod tests {
    use super::shared_fences;
    use interlock_kernel::machine::Machine;

    fn machine(name: &str, fence: &str, granted: &[&str]) -> Machine {
        let all = granted.iter().chain(&["*"]).map(|name| format!("\"{name}\" = {{}}\n")).collect::<String>();
        let text = format!(
            "machine = \"{name}\"\nowner = \"tests\"\ninitial = \"idle\"\n[states.idle]\nkind = \"rest\"\n\
             [leases]\n{all}[targets.api]\nurl = \"https://api.example.com/\"\nfence = {fence}\n"
        );
        let mut machine = crate::parse("machine.toml", &text).manifest.expect("a manifest").machine;
        machine.leases.granted.retain(|name, _| granted.contains(&name.as_str()));
        machine
    }

    fn found(machines: &[Machine]) -> Vec<String> {
        shared_fences(machines).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_fence_that_two_machines_name_is_granted_to_both() {
        let [a, b] = ["a", "b"].map(|name| machine(name, "\"cluster/x\"", &["cluster/*"]));
        let without = machine("c", "\"cluster/x\"", &["cluster", "cluster/xy"]);
        assert_eq!(found(&[a.clone(), b.clone()]), Vec::<String>::new());
        let said = "the lease `cluster/x` fences effects of a, b, c, and is not granted to c";
        assert_eq!(found(&[without.clone(), b, a]), [said]);
        assert_eq!(found(&[without.clone(), without.clone()]), Vec::<String>::new(), "one machine shares nothing");
        let elsewhere = machine("d", "{ from = \"desired.cluster\" }", &[]);
        let entity = machine("e", "\"entity\"", &[]);
        assert_eq!(found(&[without, elsewhere, entity]), Vec::<String>::new());
    }
}
