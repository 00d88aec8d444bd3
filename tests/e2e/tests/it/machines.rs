//! The machines of the tests: manifests around the components of `guests/`.

/// Five steps in a row that count: by `noop`. `go` is refused while busy, `later` waits its turn, and each
/// transition counts itself, so that `data` says how often everything happened.
pub(crate) const COUNTED: &str = r#"
machine   = "counted"
owner     = "interlock tests"
component = "noop.wasm"
initial   = "idle"

[data]
default = { taken = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0 }
[data.schema]
type = "object"
required = ["taken", "s1", "s2", "s3", "s4", "s5"]
additionalProperties = { type = "integer", minimum = 0 }

[events.go]
[events.later]
on_busy = "queue"

[states.idle]
kind     = "rest"
on.go    = { to = "s1", set = { "data.taken" = { increment = 1 } } }
on.later = { to = "s1", set = { "data.taken" = { increment = 1 } } }

[states.s1]
step     = "s1"
to       = [{ to = "s2", set = { "data.s1" = { increment = 1 } } }]
deadline = "10m"

[states.s2]
step     = "s2"
to       = [{ to = "s3", set = { "data.s2" = { increment = 1 } } }]
deadline = "10m"

[states.s3]
step     = "s3"
to       = [{ to = "s4", set = { "data.s3" = { increment = 1 } } }]
deadline = "10m"

[states.s4]
step     = "s4"
to       = [{ to = "s5", set = { "data.s4" = { increment = 1 } } }]
deadline = "10m"

[states.s5]
step     = "s5"
to       = [{ to = "idle", set = { "data.s5" = { increment = 1 } } }]
deadline = "10m"

[limits]
transitions = 1000
"#;

/// Waits without steps: a door that opens for a while, and a hold that only an event ends.
pub(crate) const DOOR: &str = r#"
machine = "door"
owner   = "porter <porter@example.com>"
initial = "shut"

[desired.schema]
type = "object"
required = ["colour"]
additionalProperties = false
properties.colour = { enum = ["red", "green"] }

[data]
default = { opened = 0, note = "" }
[data.schema]
type = "object"
required = ["opened", "note"]
additionalProperties = false
properties.opened = { type = "integer", minimum = 0, maximum = 1000 }
properties.note   = { type = "string" }

[events.open]
[events.open.schema]
type = "object"
required = ["times"]
additionalProperties = false
properties.times = { type = "integer", minimum = 1, maximum = 9 }

[events.hold]
[events.free]
[events.note]
on_busy = "queue"
[events.note.schema]
type = "object"
required = ["text"]
properties.text = { type = "string" }

[states.shut]
kind    = "rest"
on.hold = { to = "held" }
on.note = { set = { "data.note" = { from = "event.text" } } }
[states.shut.on.open]
to    = "open"
guard = { field = "data.opened", op = "lt", value = 900 }
set   = { "data.opened" = { increment = { from = "event.times" } } }

[states.open]
after = { wait = "300ms", to = "shut" }

[states.held]
wait    = "forever"
on.free = { to = "shut" }
"#;

/// `hostile` without deadlines that would end a loop before the test does.
pub(crate) const STUBBORN: &str = r#"
machine   = "stubborn"
owner     = "interlock tests"
component = "hostile.wasm"
initial   = "calm"

[data]
default = { name = "nothing", said = [] }
[data.schema]
type = "object"
required = ["name", "said"]

[events.attempt]
[events.attempt.schema]
type = "object"
required = ["name"]
properties.name = { type = "string" }
[events.note]
on_busy = "queue"

[states.calm]
kind       = "rest"
on.note    = { set = { "data.said" = { append = "noted" } } }
on.attempt = { to = "attempting", set = { "data.name" = { from = "event.name" } } }

[states.attempting]
step     = "attempt"
to       = ["calm", "alarm"]
idle     = "1h"
total    = "2h"
deadline = "3h"
retry    = { attempts = 3, first = "1h", max = "1h", jitter = 0.0 }

[states.alarm]
kind    = "final"
outcome = "failed"
"#;

/// A machine that takes any document.
pub(crate) const PLAIN: &str = r#"
machine = "plain"
owner   = "interlock tests"
initial = "calm"

[desired.schema]
type = "object"
[data]
default = { n = 0 }
[data.schema]
type = "object"
[events.note]
on_busy = "queue"
[events.hold]
[events.free]

[states.calm]
kind    = "rest"
on.note = { set = { "data.n" = { increment = 1 } } }
on.hold = { to = "held" }

[states.held]
wait    = "forever"
on.free = { to = "calm" }
"#;
