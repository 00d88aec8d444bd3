;; Calls what a script says with what a script says: any import, any numbers, any memory. The script is the event's
;; payload in hexadecimal, `{"s":"0200..."}`: two bytes that say how long the heap is, the heap, then calls. A call is
;; the number of its import and four bytes a parameter (eight for a long one); the word e7e7e7e7 is the entity's handle.
(module
  (import "interlock:step/transition@0.1.0" "[method]entity.id" (func $id (param i32 i32)))
  (import "interlock:step/transition@0.1.0" "[method]entity.version" (func $version (param i32) (result i64)))
  (import "interlock:step/transition@0.1.0" "[method]entity.data" (func $data (param i32 i32)))
  (import "interlock:step/transition@0.1.0" "[method]entity.deadline-ms" (func $deadline (param i32) (result i64)))
  (import "interlock:step/transition@0.1.0" "[method]entity.cancel-requested" (func $cancel (param i32) (result i32)))
  (import "interlock:step/transition@0.1.0" "[method]entity.reload" (func $reload (param i32 i32)))
  (import "interlock:step/transition@0.1.0" "[method]entity.save"
    (func $save (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "interlock:step/transition@0.1.0" "[method]entity.transition"
    (func $transition (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "interlock:step/transition@0.1.0" "[resource-drop]entity" (func $drop (param i32)))
  (import "interlock:step/lease@0.1.0" "acquire" (func $acquire (param i32 i32 i32 i32 i64 i32)))
  (import "interlock:step/lease@0.1.0" "[method]lease.extend" (func $extend (param i32 i32 i64 i32)))
  (import "interlock:step/lease@0.1.0" "[static]lease.release" (func $release (param i32 i32)))
  (import "interlock:step/fencing@0.1.0" "token" (func $token (param i32) (result i64)))
  (import "interlock:step/fencing@0.1.0" "still-holds" (func $holds (param i32) (result i32)))
  (import "interlock:step/fencing@0.1.0" "lease-token" (func $lease-token (param i32) (result i64)))
  (import "interlock:step/log@0.1.0" "write" (func $log (param i32 i32 i32 i32 i32)))
  (import "interlock:step/rows@0.1.0" "get" (func $row-get (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "interlock:step/rows@0.1.0" "delete"
    (func $row-delete (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "interlock:step/rows@0.1.0" "update"
    (func $row-update (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  ;; Those with more than sixteen words of parameters find them in memory.
  (import "interlock:step/rows@0.1.0" "put" (func $row-put (param i32 i32)))
  (import "interlock:step/rows@0.1.0" "upsert" (func $row-upsert (param i32 i32)))
  (import "interlock:step/rows@0.1.0" "claim" (func $row-claim (param i32 i32)))
  (import "interlock:step/rows@0.1.0" "query" (func $row-query (param i32 i32)))
  (import "interlock:step/rows@0.1.0" "stage" (func $row-stage (param i32 i32)))
  (import "interlock:step/rows@0.1.0" "transact" (func $row-transact (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "interlock:step/rows@0.1.0" "require-row"
    (func $require-row (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "interlock:step/rows@0.1.0" "require-entity" (func $require-entity (param i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "interlock:step/rows@0.1.0" "answers" (func $row-answers (param i32 i32)))
  (memory (export "memory") 64)
  (global $free (mut i32) (i32.const 0x100000))
  (global $at (mut i32) (i32.const 0))
  (global $end (mut i32) (i32.const 0))
  (global $entity (mut i32) (i32.const 0))

  ;; Never gives anything back; traps at the end of memory.
  (func (export "cabi_realloc") (param i32 i32 i32) (param $bytes i32) (result i32) (local $to i32)
    (local.set $to (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    (global.set $free (i32.add (local.get $to) (local.get $bytes)))
    (if (i32.gt_u (global.get $free) (i32.const 0x3ffff0)) (then unreachable))
    (local.get $to))

  (func $digit (param $c i32) (result i32)
    (if (result i32) (i32.gt_u (local.get $c) (i32.const 57))
      (then (i32.sub (local.get $c) (i32.const 87)))
      (else (i32.sub (local.get $c) (i32.const 48)))))

  ;; The next four bytes of the script.
  (func $arg (result i32) (local $word i32)
    (if (i32.gt_u (global.get $at) (global.get $end)) (then (return (i32.const 0))))
    (local.set $word (i32.load align=1 (global.get $at)))
    (global.set $at (i32.add (global.get $at) (i32.const 4)))
    (if (result i32) (i32.eq (local.get $word) (i32.const 0xe7e7e7e7))
      (then (global.get $entity))
      (else (local.get $word))))

  (func $long (result i64)
    (i64.or (i64.extend_i32_u (call $arg)) (i64.shl (i64.extend_i32_u (call $arg)) (i64.const 32))))

  ;; Where parameters stand; the first word there is the handle, which is put in its place.
  (func $placed (result i32) (local $at i32)
    (local.set $at (call $arg))
    (if (i32.lt_u (local.get $at) (i32.const 0x3ffffc)) (then
      (if (i32.eq (i32.load align=1 (local.get $at)) (i32.const 0xe7e7e7e7))
        (then (i32.store align=1 (local.get $at) (global.get $entity))))))
    (local.get $at))

  (func $call (param $nth i32)
    (block $b27 (block $b26 (block $b25 (block $b24 (block $b23 (block $b22 (block $b21 (block $b20
    (block $b19 (block $b18 (block $b17 (block $b16 (block $b15 (block $b14 (block $b13 (block $b12
    (block $b11 (block $b10 (block $b9 (block $b8 (block $b7 (block $b6 (block $b5 (block $b4
    (block $b3 (block $b2 (block $b1 (block $b0
      (br_table $b0 $b1 $b2 $b3 $b4 $b5 $b6 $b7 $b8 $b9 $b10 $b11 $b12 $b13 $b14 $b15 $b16 $b17 $b18 $b19 $b20
        $b21 $b22 $b23 $b24 $b25 $b26 $b27 (local.get $nth)))
      (call $id (call $arg) (call $arg)) (return))
      (drop (call $version (call $arg))) (return))
      (call $data (call $arg) (call $arg)) (return))
      (drop (call $deadline (call $arg))) (return))
      (drop (call $cancel (call $arg))) (return))
      (call $reload (call $arg) (call $arg)) (return))
      (call $save (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call
        $arg) (call $arg) (call $arg) (call $arg) (call $arg)) (return))
      (call $transition (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg)
        (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg)) (return))
      (call $drop (call $arg)) (return))
      (call $acquire (call $arg) (call $arg) (call $arg) (call $arg) (call $long) (call $arg)) (return))
      (call $extend (call $arg) (call $arg) (call $long) (call $arg)) (return))
      (call $release (call $arg) (call $arg)) (return))
      (drop (call $token (call $arg))) (return))
      (drop (call $holds (call $arg))) (return))
      (drop (call $lease-token (call $arg))) (return))
      (call $log (call $arg) (call $arg) (call $arg) (call $arg) (call $arg)) (return))
      (call $row-get (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call
        $arg) (call $arg)) (return))
      (call $row-delete (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg)
        (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg)) (return))
      (call $row-update (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg)
        (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call
        $arg) (call $arg)) (return))
      (call $row-put (call $placed) (call $arg)) (return))
      (call $row-upsert (call $placed) (call $arg)) (return))
      (call $row-claim (call $placed) (call $arg)) (return))
      (call $row-query (call $placed) (call $arg)) (return))
      (call $row-stage (call $placed) (call $arg)) (return))
      (call $row-transact (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg)
        (call $arg) (call $arg)) (return))
      (call $require-row (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg)
        (call $arg) (call $arg) (call $arg)) (return))
      (call $require-entity (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call $arg) (call
        $arg) (call $arg)) (return))
    (call $row-answers (call $arg) (call $arg)))

  (func (export "run") (param i32 i32) (param $handle i32) (param i32 i32 i32 i32 i32) (param $some i32)
    (param $from i32) (param $bytes i32) (param i64) (result i32) (local $last i32) (local $op i32)
    (global.set $entity (local.get $handle))
    (global.set $end (i32.const 0x20000))
    ;; Between {"s":" and "}.
    (local.set $last (i32.sub (i32.add (local.get $from) (local.get $bytes)) (i32.const 3)))
    (local.set $from (i32.add (local.get $from) (i32.const 6)))
    (block $read (loop $next
      (br_if $read (i32.ge_u (local.get $from) (local.get $last)))
      (i32.store8 (global.get $end) (i32.or
        (i32.shl (call $digit (i32.load8_u (local.get $from))) (i32.const 4))
        (call $digit (i32.load8_u offset=1 (local.get $from)))))
      (global.set $end (i32.add (global.get $end) (i32.const 1)))
      (local.set $from (i32.add (local.get $from) (i32.const 2)))
      (br $next)))
    (global.set $at (i32.add (i32.const 0x20002) (i32.load16_u (i32.const 0x20000))))
    (block $done (loop $next
      (br_if $done (i32.ge_u (global.get $at) (global.get $end)))
      (local.set $op (i32.load8_u (global.get $at)))
      (global.set $at (i32.add (global.get $at) (i32.const 1)))
      ;; An answer of its own.
      (if (i32.eq (local.get $op) (i32.const 255)) (then (return (call $arg))))
      (call $call (i32.rem_u (local.get $op) (i32.const 28)))
      (br $next)))
    ;; Zeros: it went well.
    (i32.const 0x18000))
)
