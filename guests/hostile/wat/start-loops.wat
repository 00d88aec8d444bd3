;; Loops for ever before the step is even called, in the module's start function.
;; Stopped by the idle deadline: starting an instance is part of the attempt.
(component
  (import "interlock:step/types@0.1.0" (instance $types
    (type $kind' (enum "signal" "timer" "deadline" "transition" "desired-changed" "failure"
      "created" "child" "join" "effect" "cancel" "operator" "other"))
    (export "event-kind" (type $kind (eq $kind')))
    (type $event' (record (field "id" string) (field "kind" $kind) (field "name" string)
      (field "payload" (option string)) (field "at-ms" u64)))
    (export "event" (type (eq $event')))
    (type $failure' (record (field "permanent" bool) (field "code" string) (field "reason" string)
      (field "retry-after-ms" (option u64))))
    (export "failure" (type (eq $failure')))))
  (alias export $types "event" (type $event))
  (alias export $types "failure" (type $failure))
  (import "interlock:step/transition@0.1.0" (instance $transition
    (export "entity" (type $entity (sub resource)))
    (export "[method]entity.version" (func (param "self" (borrow $entity)) (result u64)))))
  (alias export $transition "entity" (type $entity))
  (core module $Step
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
    (func $for-ever (loop $again (br $again)))
    (start $for-ever)
    (func (export "run") (param i32 i32) (param $entity i32) (param i32 i32 i32 i32 i32 i32 i32 i32 i64) (result i32)
      (i32.const 0)))
  (core instance $step (instantiate $Step))
  (func (export "run") (param "step-name" string) (param "entity" (own $entity)) (param "event" $event)
    (result (result (error $failure)))
    (canon lift (core func $step "run") (memory $step "memory") (realloc (func $step "realloc"))))
)
