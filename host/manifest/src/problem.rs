//! What can be wrong with a manifest: one stable code each.

use interlock_kernel::ids::Name;
use serde::Serialize;
use std::fmt;
use std::ops::Range;

/// Something to change in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Whether the manifest can be deployed with it.
    pub severity: Severity,
    /// A stable name of this kind of problem; one of [`CODES`].
    pub code: &'static str,
    /// What is wrong, in one line.
    pub message: String,
    /// What should have stood there, where that is a thing of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What stood there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got: Option<String>,
    /// Where, in bytes of the text.
    pub span: Range<usize>,
    /// Where it begins, from 1.
    pub line: usize,
    /// Where it begins in its line, in characters, from 1.
    pub column: usize,
    /// What to do about it.
    pub remedy: String,
}

impl Problem {
    /// A warning about a declared target, for what is beyond a manifest: at the head of the target's table, or the
    /// nearest to it that is written.
    #[must_use]
    pub fn of_target(code: &'static str, manifest: &str, target: &Name, message: String, remedy: String) -> Self {
        let heads = [format!("[targets.{target}]"), format!("targets.{target}"), "targets".to_owned()];
        let found = heads.iter().find_map(|head| manifest.find(head.as_str()).map(|at| at..at + head.len()));
        let span = found.unwrap_or(0..0);
        let before = manifest.get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let severity = Severity::Warning;
        Self { severity, code, message, expected: None, got: None, span, line, column, remedy }
    }
}

/// Whether a manifest can be deployed with a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can; it is probably not what its owner means.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// A kind of problem: its stable name, and how bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
}

impl From<Code> for Kind {
    fn from(code: Code) -> Self {
        Self { code: code.text(), severity: code.severity() }
    }
}

macro_rules! codes {
    ($($variant:ident $text:literal $severity:ident $about:literal,)*) => {
        /// A kind of problem that a manifest can have.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $(#[doc = $about] $variant,)*
        }

        impl Code {
            /// Its stable name.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            const fn severity(self) -> Severity {
                match self {
                    $(Self::$variant => Severity::$severity,)*
                }
            }
        }

        /// Every code, its severity and what it means.
        pub const CODES: &[(&str, Severity, &str)] = &[$(($text, Severity::$severity, $about),)*];
    };
}

codes! {
    // How it is written.
    Syntax "syntax" Error "The text is not TOML.",
    UnknownKey "unknown-key" Error "A key this table does not have.",
    MissingKey "missing-key" Error "A key this table must have.",
    WrongType "wrong-type" Error "A value of another type than its key takes.",
    BadName "bad-name" Error "A name that breaks the rule for names.",
    ReservedName "reserved-name" Error "A name that belongs to the host.",
    BadChoice "bad-choice" Error "A word that is not one of those its key knows.",
    BadDuration "bad-duration" Error "A length of time that cannot be read.",
    BadSize "bad-size" Error "A size that cannot be read.",
    BadPath "bad-path" Error "A field path or source that cannot be read, or is not allowed there.",
    BadValue "bad-value" Error "A value that its key cannot take.",
    OutOfRange "out-of-range" Error "A number, duration or size outside its bounds.",
    TooLarge "too-large" Error "More bytes or entries than the host takes.",
    // Schemas and documents.
    NoSchema "no-schema" Warning "A document without a schema: anything is accepted.",
    BadSchema "bad-schema" Error "A JSON Schema that does not compile.",
    UnknownKeyword "unknown-keyword" Warning "A JSON Schema keyword nobody knows: it checks nothing.",
    BadDefault "bad-default" Error "A default that its own schema refuses.",
    // States and their moves.
    InitialNotRest "initial-not-rest" Error "An entity must begin at rest.",
    UnknownState "unknown-state" Error "A move to a state that does not exist.",
    UnreachableState "unreachable-state" Warning "No way leads from the initial state to this one.",
    WrongKind "wrong-kind" Error "A key that a state of this kind cannot have.",
    UnusedKey "unused-key" Warning "A key that has no effect here.",
    StepWithoutTo "step-without-to" Error "A step that no transition is allowed to.",
    ToWithoutStep "to-without-step" Error "Transitions nobody can ask for.",
    NoWayOut "no-way-out" Error "A working state that nothing leaves: the lock would stay for good.",
    NoDeadline "no-deadline" Error "A working state that may last for ever without saying so.",
    NeverRests "never-rests" Warning "From here no rest or final state can be reached.",
    RestsForGood "rests-for-good" Warning "A rest state that takes no event.",
    DuplicateMove "duplicate-move" Error "Two transitions of a step to the same state.",
    DuplicateTimer "duplicate-timer" Error "Two timers of a state with one name.",
    EmptyMove "empty-move" Error "A move that neither enters a state nor sets a field.",
    ShadowedMove "shadowed-move" Warning "A move behind one without guard: it is never taken.",
    NoComponent "no-component" Error "Steps, and no component to run them.",
    // Events and fields.
    UndeclaredEvent "undeclared-event" Error "An event that is not declared.",
    UnusedEvent "unused-event" Warning "An event that no state takes.",
    UnknownField "unknown-field" Error "A field that the schema rules out.",
    TypeMismatch "type-mismatch" Warning "A comparison or change that the schema's types make pointless.",
    UnknownTarget "unknown-target" Error "A target that is not declared.",
    LateEffect "late-effect" Warning "A late success of a request that is not safe is only put on record.",
    EffectWait "effect-wait" Warning "A state without a bound that only the success of an effect leaves.",
    TimerField "timer-field" Warning "A way into a state that brings no due time for a timer of it.",
    // Leases.
    NotGranted "not-granted" Error "A lease that `[leases]` does not grant.",
    NeedsWithoutStep "needs-without-step" Error "Leases for attempts of a state that has no step.",
    LeaseUnderIdle "lease-under-idle" Warning "An attempt may be idle for longer than a lease lasts that it has.",
    HoldAndWait "hold-and-wait" Warning "Two states take two leases in opposite order: executions may wait for each other.",
    // Tables.
    ClaimNotHeld "claim-not-held" Error "A claim that does not write what counts as claimed.",
    StillHeld "still-held" Error "What takes a row back, or gives it up, and leaves it as claimed.",
    NoRelease "no-release" Error "Claimed rows are taken back, and nothing says what becomes of them.",
    RefusedChange "refused-change" Error "A change of a row that the table's schema always refuses.",
    UnservedClaim "unserved-claim" Warning "No index serves the rows that a claim looks for.",
    ClaimsAgain "claims-again" Warning "A claim that takes rows which are claimed already.",
    NoAccess "no-access" Warning "A table that nobody may do anything with.",
    // Times.
    HolidaysEnd "holidays-end" Warning "A list of holidays that ends within a year: a timer that comes behind it is refused.",
    IdleOverTotal "idle-over-total" Error "An attempt may be idle for longer than it may last.",
    DeadlineUnderTotal "deadline-under-total" Warning "The visit ends before one attempt may.",
}
