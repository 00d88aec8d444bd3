;; A core module for WASI preview 1, as old toolchains make them.
;; Refused at deploy by name, with the advice to build for wasm32-wasip2.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")))
