//! Every key a scenario may have, table by table.

use interlock_manifest::reading::Keys;

macro_rules! keys {
    ($($table:ident $def:literal $what:literal [$($name:literal)*])*) => {
        $(pub(super) const $table: Keys = Keys { what: $what, names: &[$($name),*] };)*
    };
}

keys! {
    SCENARIO "" "a scenario" ["scenario" "given" "when" "then" "always" "eventually" "explore"]
    GIVEN "given" "a given entity" ["key" "desired" "labels"]
    SEND "send" "a `send`" [
        "send" "payload" "id" "expect_version" "expect_generation" "expect_visit" "expect_execution" "entity" "answer"
        "fault" "then"
    ]
    APPLY "apply" "an `apply`" ["apply" "generation" "entity" "answer" "fault" "then"]
    CREATE "create" "a `create`" ["create" "desired" "labels" "on_existing" "answer" "fault" "then"]
    KILL "kill" "a `kill`" ["kill" "entity" "answer" "fault" "then"]
    UNPARK "unpark" "an `unpark`" ["unpark" "entity" "answer" "fault" "then"]
    DELETE "delete" "a `delete`" ["delete" "entity" "answer" "fault" "then"]
    ADVANCE "advance" "an `advance`" ["advance" "then"]
    CRASH "crash" "a `crash`" ["crash" "then"]
    DOWN "down" "a `down`" ["down" "then"]
    WALL "wall" "a `wall`" ["wall" "then"]
    PLANT "plant" "a `fault`" ["fault" "then"]
    CHECK "check" "a check" ["then"]
    FAULT "fault" "a fault" ["step" "call" "attempt" "what" "times" "entity"]
    THEN "then" "what must be so" [
        "entity" "exists" "state" "version" "generation" "observed" "desired" "data" "outputs" "parked" "locked"
        "attempts" "inbox" "outcome" "conditions" "answers" "history"
    ]
    PROMISE "promise" "a promise" [
        "name" "entity" "when" "state" "parked" "locked" "outcome" "all" "any" "field" "op" "value"
    ]
    TEST "test" "a test" ["state" "parked" "locked" "outcome" "all" "any" "field" "op" "value"]
    EXPLORE "explore" "`explore`" ["depth" "faults" "states"]
}
