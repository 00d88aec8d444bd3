//! From a step's name in the manifest to the function that is it.

use crate::{Done, Entity, Failure};

/// A step: reads its entity and ends with an accepted transition or a failure.
pub type Run = fn(&Entity) -> Result<Done, Failure>;

/// A step by name.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    #[doc(hidden)]
    pub name: &'static str,
    #[doc(hidden)]
    pub run: Run,
}

impl Step {
    /// The name as the manifest spells it: `check_quota` is `check-quota` there.
    #[must_use]
    pub fn name(&self) -> String {
        self.last_segment().replace('_', "-")
    }

    /// For hosts: whether it is the same function by the same name.
    #[must_use]
    pub fn is_same(&self, other: &Step) -> bool {
        self.name == other.name && std::ptr::fn_addr_eq(self.run, other.run)
    }

    fn is(&self, name: &str) -> bool {
        let same = |a: u8, b: u8| a == b || (a == b'_' && b == b'-');
        let own = self.last_segment();
        own.len() == name.len() && own.bytes().zip(name.bytes()).all(|(a, b)| same(a, b))
    }

    fn last_segment(&self) -> &'static str {
        self.name.rsplit("::").next().map_or(self.name, |segment| segment.trim())
    }
}

/// Runs the step of this name, as a component does and as a test may.
///
/// # Errors
/// What the step returns; a permanent failure with the code `unknown-step`, naming the known
/// ones, if there is none of this name.
pub fn run(steps: &[Step], name: &str, entity: &Entity) -> Result<Done, Failure> {
    match steps.iter().find(|step| step.is(name)) {
        Some(step) => (step.run)(entity),
        None => {
            let known: Vec<String> = steps.iter().map(Step::name).collect();
            let reason = format!("this component has no step {name:?}; it has {}", known.join(", "));
            Err(Failure::permanent(reason).code("unknown-step"))
        }
    }
}

/// Makes these functions the steps of the component: `steps!(plan, verify)`.
///
/// A function `check_quota` is the step `check-quota` of the manifest (or `check_quota`); another
/// name is given as `steps!("move" => move_pool)`. The list is also there as `STEPS`, to
/// [`run`] steps by name in a test.
#[macro_export]
macro_rules! steps {
    ($($($name:literal =>)? $step:path),+ $(,)?) => {
        /// The steps of this component.
        #[allow(unreachable_pub, reason = "reachable where the steps are at a crate's root")]
        pub const STEPS: &[$crate::Step] =
            &[$($crate::Step { name: $crate::__name!($($name =>)? $step), run: $step }),+];

        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "the export itself, generated")]
        const _: () = {
            struct Component;
            impl $crate::wasm::bindings::Guest for Component {
                fn run(
                    name: ::std::string::String,
                    entity: $crate::wasm::bindings::Entity,
                    event: $crate::wasm::bindings::Event,
                ) -> ::std::result::Result<(), $crate::wasm::bindings::Failure> {
                    $crate::wasm::run(STEPS, &name, entity, event)
                }
            }
            $crate::wasm::bindings::export!(Component with_types_in $crate::wasm::bindings);
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __name {
    ($name:literal => $step:path) => {
        $name
    };
    ($step:path) => {
        stringify!($step)
    };
}
