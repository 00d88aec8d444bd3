;; Exports `run`, of another type.
;; Refused at deploy by name, with the type that `run` has.
(component
  (core module $Step (func (export "run") (result i32) (i32.const 0)))
  (core instance $step (instantiate $Step))
  (func (export "run") (result u32) (canon lift (core func $step "run"))))
